{{- define "sluice.name" -}}
{{- if contains "sluice" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-sluice" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "sluice-%s" .Chart.Version }}
{{- end }}

{{- define "sluice.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{/* Settings that would start and then lose money, or never start. */}}
{{- define "sluice.checked" -}}
{{- $several := or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}
{{- if and (eq .Values.database "embedded") $several }}
{{- fail "replicas above 1 and autoscaling need a shared database: set database to postgres, with DATABASE_URL in existingSecret" }}
{{- end }}
{{- if and (eq .Values.database "postgres") (not .Values.existingSecret) }}
{{- fail "database: postgres needs existingSecret, a Secret with GATEWAY_SECRET and DATABASE_URL" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.existingSecret) }}
{{- fail "serviceMonitor needs existingSecret, a Secret with the token of options.metrics_token" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress needs a host" }}
{{- end }}
{{- end }}

{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
