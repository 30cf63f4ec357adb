import { mcpFunctionName } from '@sluice/wire/responses'
import { asRecord } from '@sluice/wire/json/record'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { GatheredList } from './gathered-lists.ts'
import { asFields, type Fields, isObject } from './protocol.ts'

/** A tool of type `mcp` in a request of the Responses API that the gateway serves itself. */
export interface GatewayTool {
  /** Position in `tools` of the request. */
  readonly index: number
  readonly label: string
  /** Name of the only toolset that counts; undefined for all toolsets of the caller. */
  readonly toolset: string | undefined
  /** Which of the listed tools the model may use. */
  readonly filter: ToolFilter
}

/** The tools that `allowed_tools` names. What is undefined restricts nothing. */
interface ToolFilter {
  readonly names: ReadonlySet<string> | undefined
  /** Whether the annotations of a tool must call it read-only, or must not. */
  readonly isReadOnly: boolean | undefined
}

/** Maximum number of tools in a request that name the gateway, each of which lists everything that its caller has. */
const MAX_TOOLS = 16
/** Another name of `/mcp`, by which clients of LiteLLM know it. */
const OTHER_NAME = 'litellm_proxy'
const PATH = /^\/mcp(?:\/([^/?#]+))?$/

/**
 * The tools of a request whose `server_url` is the gateway's own address. Throws `invalid_request` for one that cannot be
 * served: `docs/mcp.md: Tools in responses`.
 */
export function gatewayTools(scan: ScannedObject, { options }: Settings): readonly GatewayTool[] {
  const tools = scan.span('tools')
  if (!tools || scan.kindOf(tools.node) !== 'array') return NONE
  let found: GatewayTool[] | undefined
  let index = -1
  for (const node of scan.elements(tools.node)) {
    index += 1
    const type = scan.kindOf(node) === 'object' ? scan.memberOf(node, 'type') : undefined
    if (type === undefined || scan.kindOf(type) !== 'string' || !scan.isKey(type, 'mcp')) continue
    const tool = asFields(scan.parse(node))
    const path = ownPath(tool['server_url'], options)
    if (path === undefined) continue
    const read = readTool(tool, index, path)
    if (found?.some(({ label }) => label === read.label))
      throw invalid(index, 'server_label', 'a label that no other tool of the request has')
    ;(found ??= []).push(read)
    if (found.length > MAX_TOOLS)
      throw new GatewayError(
        'invalid_request',
        `Invalid 'tools': expected at most ${MAX_TOOLS} tools of this gateway.`,
      )
  }
  return found ?? NONE
}

const NONE: readonly GatewayTool[] = []

/** The toolset in an address of the gateway, '' if it names none; undefined for another address. */
function ownPath(
  url: unknown,
  { public_url: origin, base_path: base }: Settings['options'],
): string | undefined {
  if (typeof url !== 'string') return undefined
  if (url === OTHER_NAME) return ''
  const given = url.startsWith('/') ? undefined : URL.parse(url)
  if (given && (origin === '' || given.origin !== origin || given.search !== '' || given.hash !== ''))
    return undefined
  const path = given ? given.pathname : url
  const match = PATH.exec(base !== '' && path.startsWith(`${base}/`) ? path.slice(base.length) : path)
  return match ? (match[1] ?? '') : undefined
}

function readTool(tool: Fields, index: number, toolset: string): GatewayTool {
  const { server_label: label, require_approval: approval, allowed_tools: allowed } = tool
  if (typeof label !== 'string' || label === '') throw invalid(index, 'server_label', 'a text')
  if (approval !== undefined && approval !== null && approval !== 'never')
    throw invalid(index, 'require_approval', '"never": the gateway calls its tools without approval')
  const filter = filterOf(allowed ?? undefined)
  if (!filter)
    throw invalid(index, 'allowed_tools', 'a list of names, or an object with tool_names, read_only or both')
  return {
    index,
    label,
    toolset: toolset === '' ? undefined : toolset,
    filter,
  }
}

/** Reads `allowed_tools`. Undefined if it has another form, because a restriction that is not known must not be ignored. */
function filterOf(allowed: unknown): ToolFilter | undefined {
  if (allowed === undefined) return { names: undefined, isReadOnly: undefined }
  const { tool_names, read_only, ...others } = isObject(allowed) ? allowed : { tool_names: allowed }
  const [names, isReadOnly] = [tool_names ?? undefined, read_only ?? undefined]
  if (names !== undefined && !(Array.isArray(names) && names.every((name) => typeof name === 'string')))
    return undefined
  if (isReadOnly !== undefined && typeof isReadOnly !== 'boolean') return undefined
  if ((names ?? isReadOnly) === undefined || Object.keys(others).length > 0) return undefined
  return { names: names && new Set(names), isReadOnly }
}

function isAllowed({ names, isReadOnly }: ToolFilter, { name, annotations }: Fields): boolean {
  const fits = isReadOnly === undefined || isReadOnly === (asFields(annotations)['readOnlyHint'] === true)
  return fits && (names?.has(String(name)) ?? true)
}

function invalid(index: number, member: string, expected: string): GatewayError {
  return new GatewayError('invalid_request', `Invalid 'tools[${index}].${member}': expected ${expected}.`)
}

/** A tool of a server, as a function that a model may call. */
export interface OfferedFunction {
  readonly tool: GatewayTool
  /** Name under which clients see it. */
  readonly listed: string
}

/** The tools of a request with what their servers list. */
export class OfferedTools {
  readonly tools: readonly GatewayTool[]
  /** The functions by their names. */
  readonly functions = new Map<string, OfferedFunction>()
  /** The definitions of the functions of each tool, and its item in the answer without an id, as JSON texts. */
  readonly offers: { readonly definitions: readonly string[]; readonly item: Fields }[] = []
  /** Names of the servers that have failed. */
  readonly unavailable: readonly string[]
  /** Bytes of all definitions. */
  bytes = 0
  readonly #maxBytes: number

  /** `taken`: names of the client's own functions. Throws `request_too_large` if the definitions have more than `maxBytes`. */
  constructor(
    tools: readonly GatewayTool[],
    lists: readonly GatheredList[],
    taken: Iterable<string>,
    maxBytes: number,
  ) {
    this.tools = tools
    this.#maxBytes = maxBytes
    this.unavailable = [...new Set(lists.flatMap(({ unavailable }) => unavailable))].toSorted()
    const names = new Set(taken)
    for (const [at, tool] of tools.entries()) this.#offer(tool, lists[at] as GatheredList, names)
  }

  /** The name of the function that stands for a tool; undefined if there is none. */
  functionOf(label: string, listed: string): string | undefined {
    for (const [name, offered] of this.functions)
      if (offered.tool.label === label && offered.listed === listed) return name
    return undefined
  }

  #offer(tool: GatewayTool, { entries, unavailable }: GatheredList, taken: Set<string>): void {
    const shown = entries
      .filter((entry) => isAllowed(tool.filter, entry) && isShallow(entry))
      .map((entry) => {
        const { name, description, inputSchema, annotations } = entry
        return {
          name: String(name),
          description: typeof description === 'string' ? description : null,
          input_schema: inputSchema,
          annotations: isObject(annotations) ? annotations : null,
        }
      })
    const definitions = shown.map(({ name: listed, description, input_schema: parameters }) => {
      let name = mcpFunctionName(listed)
      for (let whole = `${tool.label}\n${listed}`; taken.has(name); whole += '\n')
        name = mcpFunctionName(listed, whole)
      taken.add(name)
      this.functions.set(name, { tool, listed })
      const about = description === null ? {} : { description }
      // Schemas of servers rarely fit the rules for strict functions.
      const definition = JSON.stringify({ type: 'function', name, ...about, parameters, strict: false })
      this.bytes += Buffer.byteLength(definition)
      if (this.bytes > this.#maxBytes)
        throw new GatewayError(
          'request_too_large',
          `the definitions of the tools have more than ${this.#maxBytes} bytes; restrict them by allowed_tools or a toolset`,
        )
      return definition
    })
    const error = unavailable.length > 0 ? `unavailable: ${unavailable.join(', ')}` : null
    const item = { type: 'mcp_list_tools', server_label: tool.label, tools: shown, error }
    this.offers.push({ definitions, item })
  }
}

/** Maximum levels of a definition. A request has at most 128, some of them around the definition. */
const MAX_LEVELS = 100

/** Whether a definition fits into a request. One that does not would make each request with the tool fail. */
function isShallow({ inputSchema, annotations }: Fields): boolean {
  return [inputSchema, annotations].every((value) => hasLevels(value, MAX_LEVELS))
}

function hasLevels(value: unknown, most: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return most > 0 && Object.values(value).every((member) => hasLevels(member, most - 1))
}

/** Names of the functions and custom tools that a request declares itself. */
export function declaredNames(scan: ScannedObject): readonly string[] {
  const tools = scan.value('tools')
  return (Array.isArray(tools) ? tools : []).flatMap((tool) => {
    const { name, function: nested } = asRecord(tool) ?? {}
    return [name, asRecord(nested)?.['name']].filter((one) => typeof one === 'string')
  })
}
