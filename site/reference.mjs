// The OpenAPI document of the gateway as pages, one for each area.
import { openApiDocument } from '../src/api/openapi.ts'
import { JSON_ROUTES } from '../src/api/json-routes.ts'
import { RAW_ROUTES } from '../src/api/raw-routes.ts'

const TITLES = {
  relay: 'Calls of OpenAI clients',
  messages: 'Messages',
  rerank: 'Rerank',
  gemini: 'Gemini API',
  usage: 'Usage of a key',
  'billing-subscription': 'Billing: grant',
  'billing-usage': 'Billing: use',
  management: 'Administration',
}
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The OpenAPI document. */
export const openApi = () => openApiDocument([...RAW_ROUTES, ...JSON_ROUTES])

/** Title and link of each page. */
export function referencePages() {
  return openApi().tags.map(({ name }) => ({ name, title: TITLES[name] ?? name, link: `/reference/${name}` }))
}

/** The pages as Markdown, by their names. */
export function referenceTexts() {
  const document = openApi()
  return new Map(referencePages().map(({ name, title }) => [name, pageOf(document, name, title)]))
}

function pageOf({ paths }, tag, title) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]?.tags?.includes(tag)).map((method) => ({
      path,
      method,
      ...methods[method],
      parameters: [...(methods.parameters ?? []), ...(methods[method].parameters ?? [])],
    })),
  )
  return `# ${title}\n\nThe operations of this area in the gateway's OpenAPI document, which it serves at \`GET /openapi.json\`. [The API](../api.md) explains them.\n\n${operations.map(operationText).join('\n')}`
}

function operationText({ path, method, summary, description, parameters, requestBody, responses, security }) {
  const lines = [`## ${method.toUpperCase()} ${escaped(path)}`, '']
  if (summary) lines.push(`${escaped(summary)}.`.replace(/\.\.$/, '.'), '')
  if (description) lines.push(escaped(description), '')
  if (security?.length === 0) lines.push('Needs no credentials.', '')
  else if (security)
    lines.push(
      `Credentials: ${security
        .map((one) =>
          Object.keys(one)
            .map((name) => `\`${name}\``)
            .join(' with '),
        )
        .join(', or ')}.`,
      '',
    )
  if (parameters.length > 0)
    lines.push(
      '| Parameter | In | Type | Meaning |',
      '|---|---|---|---|',
      ...parameters.map(parameterRow),
      '',
    )
  const body = requestBody?.content?.['application/json']?.schema
  if (body) lines.push(...fields('Field of the body', body))
  const data = responses['200']?.content?.['application/json']?.schema
  if (data) lines.push(...fields('Field of the response', data))
  lines.push(
    '| Status | Meaning |',
    '|---|---|',
    ...Object.entries(responses).map(
      ([status, { description: text }]) => `| ${status} | ${cell(text ?? '')} |`,
    ),
    '',
  )
  return lines.join('\n')
}

function parameterRow({ name, in: place, required, schema, description = '' }) {
  return `| \`${name}\`${required ? ' (required)' : ''} | ${place} | ${cell(typeOf(schema))} | ${cell(description)} |`
}

function fields(title, schema) {
  const rows = rowsOf(schema, '')
  if (rows.length === 0) return []
  return [`| ${title} | Type | Meaning |`, '|---|---|---|', ...rows, '']
}

// Members to a depth of three, by their paths.
function rowsOf(schema, prefix, depth = 0) {
  const { properties = {}, required = [], items } = schema ?? {}
  if (items && depth < 4) return rowsOf(items, `${prefix}[].`.replace(/\.\[\]/, '[]'), depth + 1)
  return Object.entries(properties).flatMap(([name, member]) => {
    const path = `${prefix}${name}`
    const row = `| \`${path}\`${required.includes(name) ? ' (required)' : ''} | ${cell(typeOf(member))} | ${cell(member.description ?? '')} |`
    const isDeep = depth < 3 && (member.properties || member.items?.properties)
    return isDeep
      ? [row, ...rowsOf(member.items ?? member, member.items ? `${path}[].` : `${path}.`, depth + 1)]
      : [row]
  })
}

function typeOf(schema = {}) {
  const { type, anyOf, oneOf, enum: values, const: only, items, maxLength } = schema
  if (only !== undefined) return `\`${JSON.stringify(only)}\``
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  const several = anyOf ?? oneOf
  if (several) return [...new Set(several.map(typeOf))].join(' or ')
  if (type === 'array') return `array of ${typeOf(items)}`
  const bytes = schema['x-max-bytes'] ?? maxLength
  return `${[type ?? 'any'].flat().join(' or ')}${bytes ? `, at most ${bytes} bytes` : ''}`
}

function escaped(text) {
  return text.replaceAll('{', '&#123;').replaceAll('<', '&lt;')
}

function cell(text) {
  return escaped(String(text)).replaceAll('|', '\\|').replaceAll('\n', ' ')
}
