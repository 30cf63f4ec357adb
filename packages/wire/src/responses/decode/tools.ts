import type { DroppedFields } from '../../codec.ts'
import type { SearchLocation, Tool, ClientTool, WebSearch } from '../../conversation.ts'
import { described, type DescribedInput } from '../../described-input.ts'
import { customToolAsFunction, MAX_SEARCHES_BY_SIZE } from '../../openai-tools.ts'
import {
  hasOtherMembers,
  requireBoolean,
  requireEnumValue,
  type Fields,
  requireObject,
  requireArray,
  nullToUndefined,
  readSchemaText,
  requireText,
} from '../../field.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { DOMAIN_LISTS, readSearchDomains } from '../../web-search.ts'
import { isStrictSchema } from '../../schemas/strict-subset.ts'
import { reportDropped } from '../dropped-fields.ts'

/**
 * Beginnings of the types of tools that only the provider can run, each with the name under which such a tool
 * is reported as dropped.
 */
const PROVIDER_TOOLS = [
  ['code_interpreter', 'tools.code_interpreter'],
  ['computer', 'tools.computer'],
  ['file_search', 'tools.file_search'],
  ['image_generation', 'tools.image_generation'],
  ['mcp', 'tools.mcp'],
  ['programmatic_tool_calling', 'tools.programmatic_tool_calling'],
] as const

/** Members of tools that are read, and `environment`, which says only where the client runs its shell. */
const TOOL_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'parameters',
  'strict',
  'format',
  'function',
  'tools',
  'execution',
  'environment',
])
/** Members of a web search that are read. */
const SEARCH_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'search_context_size',
  'user_location',
  'filters',
])
const FILTERS: ReadonlySet<string> = new Set(DOMAIN_LISTS)
const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** The tools that a request offers: those in `tools`, and those in items of the input. */
export class OfferedTools {
  readonly tools: Tool[] = []
  webSearch: WebSearch | undefined
  /** Whether a tool was dropped, because only its provider can run it. */
  hasDropped = false
  /** Index in `tools` of each tool, by its function name. */
  readonly #places = new Map<string, number>()
  readonly #scan: ScannedObject
  readonly #names: ToolFunctionNames
  readonly #dropped: DroppedFields

  constructor(scan: ScannedObject, names: ToolFunctionNames, dropped: DroppedFields) {
    this.#scan = scan
    this.#names = names
    this.#dropped = dropped
  }

  /** Reads a list of tools, if there is one. Throws `invalid_request` with the path. */
  read(list: Node | undefined, path: string): void {
    if (list === undefined || this.#scan.kindOf(list) === 'null') return
    const tools = requireArray(this.#scan.parse(list), path)
    for (const [index, node] of this.#scan.elements(list).entries())
      this.#readTool(node, requireObject(tools[index], `${path}[${index}]`), `${path}[${index}]`)
  }

  #readTool(node: Node, tool: Fields, path: string, namespace?: string): void {
    const type = requireText(tool['type'], `${path}.type`)
    const typed = typedTool(type)
    const isSearch = type.startsWith('web_search')
    if (type === 'function') this.#readFunction(node, tool, path, namespace)
    else if (type === 'custom') this.#readCustom(tool, path, namespace)
    else if (type === 'namespace' && namespace === undefined) this.#readNamespace(node, tool, path)
    else if (typed) this.#add({ form: { type: typed, name: typed }, ...TYPED_TOOLS[typed] })
    else if (type === 'tool_search' && tool['execution'] === 'client') this.#readToolSearch(node, tool, path)
    else if (isSearch) this.webSearch = decodeWebSearch(tool, path, this.#dropped)
    else return this.#drop(type)
    if (!isSearch && hasOtherMembers(tool, TOOL_FIELDS)) reportDropped(this.#dropped, 'tools.unknown')
  }

  #readFunction(given: Node, outer: Fields, outerPath: string, namespace: string | undefined): void {
    // Some clients declare functions as in chat, in a member of the tool.
    const inner = outer['name'] === undefined ? this.#scan.memberOf(given, 'function') : undefined
    const [node, path] = inner === undefined ? [given, outerPath] : [inner, `${outerPath}.function`]
    const tool = inner === undefined ? outer : requireObject(outer['function'], path)
    const name = requireText(tool['name'], `${path}.name`)
    const schema = readSchemaText(this.#scan, node, 'parameters', path)
    const strict = nullToUndefined(tool['strict'])
    this.#add({
      form: { type: 'function', name, ...(namespace !== undefined && { namespace }) },
      description: optionalText(tool, 'description', path),
      schema,
      strict: strict === undefined ? isEnforcedByDefault(schema) : requireBoolean(strict, `${path}.strict`),
    })
  }

  #readCustom(tool: Fields, path: string, namespace: string | undefined): void {
    const name = requireText(tool['name'], `${path}.name`)
    const format = nullToUndefined(tool['format'])
    const fields = format === undefined ? {} : requireObject(format, `${path}.format`)
    const grammar = fields['type'] === 'grammar' && {
      syntax: requireText(fields['syntax'], `${path}.format.syntax`),
      definition: requireText(fields['definition'], `${path}.format.definition`),
    }
    this.#add({
      form: { type: 'custom', name, ...(namespace !== undefined && { namespace }) },
      ...customToolAsFunction(optionalText(tool, 'description', path), grammar || undefined),
    })
  }

  #readNamespace(node: Node, tool: Fields, path: string): void {
    const namespace = requireText(tool['name'], `${path}.name`)
    const list = this.#scan.memberOf(node, 'tools')
    const tools = requireArray(tool['tools'], `${path}.tools`)
    for (const [index, inner] of (list === undefined ? [] : this.#scan.elements(list)).entries()) {
      const at = `${path}.tools[${index}]`
      this.#readTool(inner, requireObject(tools[index], at), at, namespace)
    }
  }

  #readToolSearch(node: Node, tool: Fields, path: string): void {
    this.#add({
      form: { type: 'tool_search', name: 'tool_search' },
      description: optionalText(tool, 'description', path) ?? TOOL_SEARCH.description,
      schema: readSchemaText(this.#scan, node, 'parameters', path) ?? TOOL_SEARCH.schema,
    })
  }

  /**
   * Adds a tool. If a tool with the same name was offered before, the new one replaces it. This happens to
   * tools that were found by a tool search.
   */
  #add(
    given: Pick<Tool, 'description' | 'schema'> & {
      form: NonNullable<Tool['form']>
      strict?: boolean | undefined
    },
  ): void {
    const { form, description, schema, strict } = given
    const name = this.#names.nameOf(form)
    const isPlain = form.type === 'function' && form.namespace === undefined && form.name === name
    const tool: Tool = {
      name,
      description: description || undefined,
      schema,
      strict,
      ...(!isPlain && { form }),
    }
    const at = this.#places.get(name)
    if (at !== undefined) this.tools[at] = tool
    else this.#places.set(name, this.tools.push(tool) - 1)
  }

  #drop(type: string): void {
    this.hasDropped = true
    const known = PROVIDER_TOOLS.find(([prefix]) => type.startsWith(prefix))
    reportDropped(
      this.#dropped,
      type === 'tool_search' ? 'tools.tool_search' : (known?.[1] ?? 'tools.unknown'),
    )
  }
}

function decodeWebSearch(
  { external_web_access: isLive, ...tool }: Fields,
  path: string,
  dropped: DroppedFields,
): WebSearch {
  const filters = asRecord(tool['filters']) ?? {}
  if (isLive === false || hasOtherMembers(tool, SEARCH_FIELDS) || hasOtherMembers(filters, FILTERS))
    reportDropped(dropped, 'web_search')
  const place = nullToUndefined(tool['user_location'])
  const fields = place === undefined ? {} : requireObject(place, `${path}.user_location`)
  const location: SearchLocation = Object.fromEntries(
    PLACES.map((name) => [name, fields[name]]).filter(([, value]) => typeof value === 'string'),
  )
  return {
    maxUses: requireEnumValue(
      MAX_SEARCHES_BY_SIZE,
      nullToUndefined(tool['search_context_size']) ?? 'medium',
      `${path}.search_context_size`,
    ),
    isOptional: true,
    ...readSearchDomains(filters),
    ...(Object.keys(location).length > 0 && { location }),
  }
}

function optionalText(tool: Fields, key: string, path: string): string | undefined {
  const value = nullToUndefined(tool[key])
  return value === undefined ? undefined : requireText(value, `${path}.${key}`)
}

/**
 * Tools are strict by default in this protocol if their schema allows it. In other protocols strictness must
 * be stated.
 */
function isEnforcedByDefault(schema: string | undefined): true | undefined {
  return schema !== undefined && isStrictSchema(schema) ? true : undefined
}

type FormType = Exclude<ClientTool['type'], 'function' | 'custom' | 'tool_search'>

const text = { type: 'string' }
const integer = { type: 'integer' }
const texts = { type: 'array', items: text }

/**
 * Tools with types of their own that the client runs. The item of a call contains the input of the tool in
 * one of its members.
 */
const TYPED_TOOLS: Readonly<Record<FormType, DescribedInput>> = {
  local_shell: described(
    'Runs a command on the local machine and returns its output.',
    {
      command: { ...texts, description: 'The command and its arguments.' },
      working_directory: text,
      timeout_ms: integer,
      env: { type: 'object', additionalProperties: text },
      user: text,
    },
    ['command'],
  ),
  shell: described(
    'Runs shell commands and returns the output of each.',
    { commands: texts, timeout_ms: integer, max_output_length: integer },
    ['commands'],
  ),
  apply_patch: described(
    'Creates, updates or deletes a file by a diff in the V4A format.',
    {
      type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
      path: text,
      diff: { ...text, description: 'The diff; left out where a file is deleted.' },
    },
    ['type', 'path'],
  ),
}

/** Returns the type if it is that of a tool that the client runs; otherwise undefined. */
function typedTool(type: string): FormType | undefined {
  return Object.hasOwn(TYPED_TOOLS, type) ? (type as FormType) : undefined
}

const SEARCH_SCHEMA = JSON.stringify({
  type: 'object',
  properties: { query: { type: 'string', description: 'What the tools are wanted for.' } },
  required: ['query'],
})

/** Description and schema of the function for a tool search. What the client states replaces them. */
const TOOL_SEARCH: DescribedInput = {
  description: 'Searches for further tools, which can be called once they were found.',
  schema: SEARCH_SCHEMA,
}

/** Maximum length of a function name in chat and messages requests. */
const MAX_NAME = 64
const SEPARATOR = '__'

/** The name of a tool in the client's protocol, with its type and namespace. */
type ClientToolName = Pick<ClientTool, 'type' | 'name' | 'namespace'>

/**
 * Gives each tool of a request a function name that other protocols accept. Namespace and name are joined to
 * one name. Both may contain the separator, so the joined name can be split again only with the help of this
 * object. The same request always gets the same names.
 */
export class ToolFunctionNames {
  readonly #byKey = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** For each function name, the last number that was appended to make another name from it. */
  readonly #last = new Map<string, number>()

  /**
   * Returns the function name of a tool. If another tool already has the wanted name, a number is appended.
   */
  nameOf(tool: ClientToolName): string {
    const key = JSON.stringify([tool.type === 'function' ? '' : tool.type, tool.namespace ?? '', tool.name])
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const wanted = tool.namespace === undefined ? tool.name : `${tool.namespace}${SEPARATOR}${tool.name}`
    const fitting = tool.namespace === undefined ? wanted : fit(wanted)
    const name = this.#taken.has(fitting) ? this.#other(fitting) : fitting
    this.#byKey.set(key, name)
    this.#taken.add(name)
    return name
  }

  #other(name: string): string {
    for (let number = this.#last.get(name) ?? 2; ; number++) {
      const suffix = `_${number}`
      const other = name.slice(0, MAX_NAME - suffix.length) + suffix
      if (this.#taken.has(other)) continue
      this.#last.set(name, number)
      return other
    }
  }
}

/** Replaces characters that other protocols refuse, and shortens the name to the maximum length. */
function fit(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_')
  if (plain.length <= MAX_NAME) return plain
  const suffix = `_${hash(name)}`
  return plain.slice(0, MAX_NAME - suffix.length) + suffix
}

/** Hash of a text (FNV-1a, 32 bits). It keeps shortened names with the same beginning different. */
function hash(text: string): string {
  let value = 0x81_1c_9d_c5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01_00_01_93)
  return (value >>> 0).toString(36)
}
