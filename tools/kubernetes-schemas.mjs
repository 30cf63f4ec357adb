// Writes test/deploy/schemas: JSON schemas of the kinds that the chart has, without descriptions, from the OpenAPI file of Kubernetes.
// node tools/kubernetes-schemas.mjs "$(go list -m -f {{.Dir}} k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad)/pkg/schemaconv/testdata/swagger.json"
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../test/deploy/schemas/', import.meta.url))
const KINDS = [
  ['apps', 'v1', 'StatefulSet'],
  ['autoscaling', 'v2', 'HorizontalPodAutoscaler'],
  ['batch', 'v1', 'Job'],
  ['core', 'v1', 'ConfigMap'],
  ['core', 'v1', 'Service'],
  ['core', 'v1', 'ServiceAccount'],
  ['networking', 'v1', 'Ingress'],
  ['networking', 'v1', 'NetworkPolicy'],
  ['policy', 'v1', 'PodDisruptionBudget'],
]
const { definitions } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const kept = {}

function keep(name) {
  if (kept[name]) return
  if (!definitions[name]) throw new Error(`the file does not define ${name}`)
  kept[name] = {}
  kept[name] = strict(definitions[name])
}

// Unknown members are mistakes; numbers with units and ports by name are texts or numbers.
function strict(schema) {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(strict)
  if (schema.$ref) {
    const name = schema.$ref.replace('#/definitions/', '')
    keep(name)
    return { $ref: `_definitions.json#/definitions/${name}` }
  }
  if (schema.format === 'int-or-string' || schema.format === 'quantity') return { type: ['string', 'number'] }
  const { type, required, items, properties, additionalProperties, enum: values } = schema
  return {
    ...(type && { type }),
    ...(required && { required }),
    ...(values && { enum: values }),
    ...(items && { items: strict(items) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, strict(value)])),
    }),
    ...(additionalProperties
      ? { additionalProperties: strict(additionalProperties) }
      : properties && { additionalProperties: false }),
  }
}

for (const [group, version, kind] of KINDS) {
  const name = `io.k8s.api.${group}.${version}.${kind}`
  keep(name)
  const file = `${kind.toLowerCase()}-${group === 'core' ? '' : `${group}-`}${version}.json`
  const schema = { ...kept[name], required: ['apiVersion', 'kind', 'metadata'] }
  writeFileSync(join(folder, file), `${JSON.stringify(schema)}\n`)
}
// A quantity such as 8Gi is declared as a text.
kept['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { type: ['string', 'number'] }
writeFileSync(join(folder, '_definitions.json'), `${JSON.stringify({ definitions: kept })}\n`)
