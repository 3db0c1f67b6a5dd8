{{- define "kms.selector" -}}
app.kubernetes.io/name: kms
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "kms.labels" -}}
{{ include "kms.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
