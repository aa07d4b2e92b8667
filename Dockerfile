# Debian 12 with the program and the Python package: docker build -t selectivbench . && docker run --rm selectivbench doctor
FROM debian:12-slim AS build
WORKDIR /src
RUN apt-get update && apt-get install -y --no-install-recommends git make
COPY scripts/install-deps scripts/
RUN scripts/install-deps build && scripts/install-deps package
COPY . .
RUN make deb wheel

# docker build --target wheel --output dist . leaves only the wheel.
FROM scratch AS wheel
COPY --from=build /src/dist/selectivbench-*.whl /

FROM debian:12-slim
COPY --from=build /src/build/package/selectivbench_*.deb /src/dist/selectivbench-*.whl /opt/
RUN apt-get update && \
    apt-get install -y --no-install-recommends python3-venv python3-numpy python3-torch /opt/selectivbench_*.deb && \
    rm -rf /var/lib/apt/lists/*
# The package goes into an environment of its own, and the whole program takes the place of the one in the wheel.
RUN python3 -m venv --system-site-packages /opt/env && \
    /opt/env/bin/pip install --no-index --no-deps /opt/selectivbench-*.whl && \
    ln -sf /usr/bin/selectivbench /opt/env/bin/selectivbench && \
    rm /opt/selectivbench*
ENV PATH=/opt/env/bin:$PATH
WORKDIR /work
ENTRYPOINT ["selectivbench"]
CMD ["--help"]
