import { asFields, type Fields, isObject } from './protocol.ts'

/** The lists that servers have: the method that reads each, the member of its result, and the capability that announces it. */
export const LISTS = {
  tools: { method: 'tools/list', member: 'tools', capability: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts', capability: 'prompts' },
  resources: { method: 'resources/list', member: 'resources', capability: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates', capability: 'resources' },
} as const

export type ListName = keyof typeof LISTS

/** What the name of a tool or prompt may be, with the prefix of its server. */
const LISTED_NAME = /^[A-Za-z0-9_.-]{1,128}$/

/** The name under which clients see a tool or a prompt of a server. */
export function listedName(server: string, name: string): string {
  return `${server}_${name}`
}

/** The server and its own name for a listed one; undefined if no list can have the name. */
export function splitName(listed: string): { readonly server: string; readonly name: string } | undefined {
  const at = listed.indexOf('_')
  return at > 0 && at < listed.length - 1 && LISTED_NAME.test(listed)
    ? { server: listed.slice(0, at), name: listed.slice(at + 1) }
    : undefined
}

/** Leaves out entries that clients must not see: without a valid name, with the name of another, or with a wrong schema. */
export function validEntries(server: string, list: ListName, entries: readonly unknown[]): readonly Fields[] {
  const objects = entries.filter(isObject)
  if (list === 'resources') return objects.filter(({ uri }) => typeof uri === 'string' && uri !== '')
  if (list === 'templates') return objects.filter(({ uriTemplate }) => typeof uriTemplate === 'string')
  const counts = new Map<unknown, number>()
  for (const { name } of objects) counts.set(name, (counts.get(name) ?? 0) + 1)
  return objects.filter((entry) => {
    const { name } = entry
    if (typeof name !== 'string' || counts.get(name) !== 1 || !splitName(listedName(server, name)))
      return false
    return list !== 'tools' || hasValidSchema(entry)
  })
}

function hasValidSchema({ inputSchema }: Fields): boolean {
  return isObject(inputSchema) && inputSchema['type'] === 'object' && paramHeaders(inputSchema) !== undefined
}

/** A parameter of a tool that is sent as a header too. */
export interface ParamHeader {
  /** Name in the header, in lower case. */
  readonly header: string
  /** Names of the members that lead to the value. */
  readonly path: readonly string[]
}

const MARK = 'x-mcp-header'
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/** The parameters of a tool that are sent as headers; undefined if the schema breaks the rules for them. */
export function paramHeaders(schema: Fields): readonly ParamHeader[] | undefined {
  const found: ParamHeader[] = []
  let marks = 0
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (!isObject(value)) return
    for (const [name, member] of Object.entries(value)) {
      // A property may have that name; the mark itself is a text beside `type`.
      if (name === MARK && !isObject(member)) marks += 1
      visit(member)
    }
  }
  visit(schema)
  if (marks === 0) return found
  const walk = (node: Fields, path: readonly string[]): boolean =>
    Object.entries(asFields(node['properties'])).every(([name, property]) => {
      const one = asFields(property)
      const header = one[MARK]
      if (header !== undefined && !isObject(header)) {
        if (typeof header !== 'string' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header)) return false
        if (!TYPES.has(one['type'])) return false
        found.push({ header: header.toLowerCase(), path: [...path, name] })
      }
      return walk(one, [...path, name])
    })
  if (!walk(schema, [])) return undefined
  const isUnique = new Set(found.map(({ header }) => header)).size === found.length
  return isUnique && found.length === marks ? found : undefined
}

/** The value of a parameter as a header states it; undefined if there is none. */
export function paramValue(given: unknown, path: readonly string[]): string | undefined {
  let value = given
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  return Number.isSafeInteger(value) ? String(value) : undefined
}

/** Orders entries by their names, by code points. */
export function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
