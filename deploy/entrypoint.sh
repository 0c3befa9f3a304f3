#!/bin/bash
# What the image runs: `anabranch` with the arguments of the container.
#
# Spark on Kubernetes starts executors from the same image with the one argument `executor`, and tells them by their
# environment what they are; so executors have the Python, the packages and the Spark of their driver.
set -eu

if [ "${1:-}" != executor ]; then
    exec anabranch "$@"
fi

spark=$(python3 -c 'import importlib.util as u; print(u.find_spec("pyspark").submodule_search_locations[0])')

# Options of the JVM come one by one, numbered, since any of them may have blanks in it.
options=()
number=0
name=SPARK_JAVA_OPT_0
while [ -n "${!name+set}" ]; do
    options+=("${!name}")
    number=$((number + 1))
    name=SPARK_JAVA_OPT_$number
done

export SPARK_HOME=$spark
exec java "${options[@]}" \
    -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:$spark/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" \
    --podName "${SPARK_EXECUTOR_POD_NAME:-}"
