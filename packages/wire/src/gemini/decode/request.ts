import { withoutBillingHeader } from '../../billing-header.ts'
import { readChoiceCount } from '../../reply.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  Conversation,
  MediaPart,
  OpaquePart,
  Part,
  TextPart,
  ThinkingPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
  WebSearch,
} from '../../conversation.ts'
import { checkMembers, kindName, refuseField } from '../../field-check.ts'
import {
  hasOtherMembers,
  requireEnumValue,
  type Fields,
  requireObject,
  describeValueKind,
  requireArray,
  requireText,
} from '../../field.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { readLogprobsRequest } from '../../logprobs.ts'
import { readSearchDomains } from '../../web-search.ts'
import { decodeThinkingConfig, includesThoughts } from '../../thinking.ts'
import { sharedField } from '../../shared-fields.ts'
import {
  checkGenerationConfig,
  GEMINI_CONVERSION_CHECKS,
  CONVERSION_CONFIG_RULES,
  refuseNamedContent,
} from '../native/request.ts'
import { reportDropped, reportDroppedTopLevelFields } from '../dropped-fields.ts'
import { modelWithoutPrefix } from '../model-name.ts'
import { decodeGoogleSchema, decodeOutputFormat, findSchemaObject } from '../output-format.ts'
import {
  memberInEitherSpelling,
  spellingsOf,
  valueNodeOf,
  topMember,
  parseTopMember,
} from '../field-spelling.ts'
import { decodeMedia, decodePlainPart } from './part.ts'
import { readSignature } from '../signature.ts'

/**
 * Decodes a checked request. The members `model` and `stream` must have been added from the path. Fields that
 * the neutral form cannot express are reported in `dropped`. Throws `invalid_request` with the path of an
 * invalid value, and for content stored at the provider.
 */
export function decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation {
  checkMembers(scan, [], GEMINI_CONVERSION_CHECKS)
  refuseNamedContent(scan)
  reportDroppedTopLevelFields(scan, dropped)
  const given = parseTopMember(scan, 'generationConfig')
  const config = given === undefined ? {} : requireObject(given, 'generationConfig')
  checkGenerationConfig(config, 'generationConfig', CONVERSION_CONFIG_RULES)
  const number = (name: string): number | undefined =>
    memberInEitherSpelling(config, name) as number | undefined
  const model = parseTopMember(scan, 'model')
  const tier = parseTopMember(scan, 'serviceTier')
  const shared = sharedField('service_tier', typeof tier === 'string' ? tierOf(tier) : undefined)
  return {
    model: modelWithoutPrefix(model === undefined ? '' : requireText(model, 'model')),
    stream: scan.value('stream') === true,
    system: withoutBillingHeader(decodeSystem(parseTopMember(scan, 'systemInstruction'), dropped), dropped),
    turns: new ContentsReader(scan, dropped).read(),
    ...decodeTools(scan, dropped),
    maxTokens: number('maxOutputTokens'),
    temperature: number('temperature'),
    topP: number('topP'),
    topK: number('topK'),
    seed: number('seed'),
    presencePenalty: number('presencePenalty'),
    frequencyPenalty: number('frequencyPenalty'),
    stop: ((memberInEitherSpelling(config, 'stopSequences') ?? []) as readonly string[]).filter(
      (text) => text !== '',
    ),
    thinking: decodeThinkingConfig(
      memberInEitherSpelling(config, 'thinkingConfig'),
      'generationConfig.thinkingConfig',
    ),
    ...(includesThoughts(memberInEitherSpelling(config, 'thinkingConfig')) && { showsThoughts: true }),
    outputFormat: decodeOutputFormat(scan, dropped),
    ...readChoiceCount('candidateCount', number('candidateCount')),
    ...readLogprobsRequest(memberInEitherSpelling(config, 'responseLogprobs') === true, number('logprobs')),
    includeUsage: true,
    ...(shared.length > 0 && { shared: new Map(shared) }),
  }
}

/** Converts Gemini's name of a tier, which may have a prefix, to the name used in other protocols. */
function tierOf(tier: string): string {
  const name = tier.toLowerCase().replace(/^service_tier_/, '')
  return name === 'standard' || name === 'unspecified' ? 'default' : name
}

/** Reads the texts of the system instruction. Its role is ignored. */
function decodeSystem(value: unknown, dropped: DroppedFields): TextPart[] {
  if (value === undefined) return []
  const given = memberInEitherSpelling(requireObject(value, 'systemInstruction'), 'parts') ?? []
  const parts = Array.isArray(given) ? (given as readonly unknown[]) : [given]
  return parts.flatMap((part, index) => {
    const path = `systemInstruction.parts[${index}]`
    const fields: Fields = requireObject(part, path)
    const text = memberInEitherSpelling(fields, 'text')
    if (text === undefined) reportDropped(dropped, 'systemInstruction')
    return text === undefined || text === ''
      ? []
      : [{ kind: 'text', text: requireText(text, `${path}.text`) }]
  })
}

/** Roles of contents, including older names for the role of function responses. */
const ROLES: ReadonlyMap<unknown, Turn['role']> = new Map<unknown, Turn['role']>([
  ['user', 'user'],
  ['function', 'user'],
  ['tool', 'user'],
  ['model', 'assistant'],
])

/** A turn to which further contents can be added. */
interface ReadTurn extends Turn {
  readonly parts: Part[]
}

/** A part of a turn, and its path in the request for error messages. */
interface Place {
  readonly node: Node
  readonly path: string
}

/**
 * Reads `contents`. A content without a role is the user's. A call without an id gets one derived from its
 * position, so that the same conversation always has the same ids. A function response belongs to the call
 * with the same id, otherwise to the first unanswered call of the same function. Throws `invalid_request`
 * with the path of an invalid value, and for a function response without a call.
 */
class ContentsReader {
  readonly #scan: ScannedObject
  readonly #dropped: DroppedFields
  /** Calls that have no response yet, in order. */
  readonly #open: { readonly id: string; readonly name: string }[] = []
  /** Ids that calls of the request already have. */
  readonly #ids = new Set<string>()
  #calls = 0

  constructor(scan: ScannedObject, dropped: DroppedFields) {
    this.#scan = scan
    this.#dropped = dropped
  }

  /** Reads all turns that are not empty. */
  read(): Turn[] {
    const contents = topMember(this.#scan, 'contents')
    if (!contents) return []
    const turns: ReadTurn[] = []
    for (const [index, node] of elementsOf(this.#scan, contents.node).entries()) {
      const { role, parts } = this.#readTurn(node, `contents[${index}]`)
      const last = turns.at(-1)
      // Chat helpers keep each chunk of a stream as a content.
      if (role === 'assistant' && last?.role === role) addContent(last.parts, parts)
      else if (parts.length > 0) turns.push({ role, parts })
    }
    return turns.map(({ role, parts }) => ({ role, parts: withWholeThoughts(parts) }))
  }

  #readTurn(node: Node, path: string): ReadTurn {
    const content = requireObject(this.#scan.parse(node), path)
    const role = ROLES.get(content['role'] ?? 'user')
    if (!role) refuseField(`${path}.role`, `'user' or 'model'`, 'another role')
    const parts = valueNodeOf(this.#scan, node, 'parts')
    if (parts === undefined) return { role, parts: [] }
    return {
      role,
      parts: elementsOf(this.#scan, parts).flatMap((part, index) =>
        this.#readPart({ node: part, path: `${path}.parts[${index}]` }),
      ),
    }
  }

  #readPart(place: Place): Part[] {
    const part = requireObject(this.#scan.parse(place.node), place.path)
    const call = memberInEitherSpelling(part, 'functionCall')
    if (call !== undefined)
      return this.#readCall(part, requireObject(call, `${place.path}.functionCall`), place)
    const response = memberInEitherSpelling(part, 'functionResponse')
    if (response === undefined) return decodePlainPart(part, place.path, this.#dropped)
    const path = `${place.path}.functionResponse`
    const node = valueNodeOf(this.#scan, place.node, 'functionResponse') as Node
    return [this.#readResponse(requireObject(response, path), { node, path })]
  }

  /** Reads a call. Its signature becomes a separate part before it. */
  #readCall(part: Fields, call: Fields, { node, path }: Place): Part[] {
    const args = valueNodeOf(this.#scan, valueNodeOf(this.#scan, node, 'functionCall'), 'args')
    if (args !== undefined && this.#scan.kindOf(args) !== 'object')
      refuseField(`${path}.functionCall.args`, 'an object', describeValueKind(this.#scan.parse(args)))
    const name = requireText(call['name'], `${path}.functionCall.name`)
    const given = memberInEitherSpelling(call, 'id')
    const id = given === undefined ? this.#nextId() : requireText(given, `${path}.functionCall.id`)
    this.#ids.add(id)
    this.#open.push({ id, name })
    const read: ToolCallPart = {
      kind: 'tool-call',
      id,
      name,
      input: args === undefined ? '{}' : this.#scan.textOf(args),
    }
    const signature = memberInEitherSpelling(part, 'thoughtSignature')
    if (signature === undefined || signature === '') return [read]
    return [readSignature(requireText(signature, `${path}.thoughtSignature`), '', 'call'), read]
  }

  #readResponse(given: Fields, { node, path }: Place): ToolResultPart {
    const name = requireText(given['name'], `${path}.name`)
    const response = valueNodeOf(this.#scan, node, 'response')
    if (response !== undefined && this.#scan.kindOf(response) !== 'object')
      refuseField(`${path}.response`, 'an object', describeValueKind(this.#scan.parse(response)))
    if (hasOtherMembers(given, RESPONSE_FIELDS)) reportDropped(this.#dropped, 'parts')
    const { text, isError } = outcomeIn(this.#scan, response)
    const media = memberInEitherSpelling(given, 'parts') ?? []
    if (!Array.isArray(media)) refuseField(`${path}.parts`, 'an array', describeValueKind(media))
    const parts = media.map((part: unknown, index): MediaPart | OpaquePart => {
      const at = `${path}.parts[${index}]`
      const given = requireObject(part, at)
      return decodeMedia(given, at, this.#dropped) ?? { kind: 'opaque', protocol: 'gemini', value: given }
    })
    const textParts: TextPart[] = text === '' ? [] : [{ kind: 'text', text }]
    return {
      kind: 'tool-result',
      callId: this.#answered(given, name, path),
      parts: [...textParts, ...parts],
      isError,
    }
  }

  /** Finds the call to which a function response belongs. Each call can have only one response. */
  #answered(response: Fields, name: string, path: string): string {
    const id = memberInEitherSpelling(response, 'id')
    const byId = id === undefined ? -1 : this.#open.findIndex((call) => call.id === id)
    const at = byId >= 0 ? byId : this.#open.findIndex((call) => call.name === name)
    const call = this.#open[at]
    if (!call) return refuseField(path, 'the response to a call in an earlier turn', 'one without its call')
    this.#open.splice(at, 1)
    return call.id
  }

  #nextId(): string {
    let id: string
    do id = `call_${++this.#calls}`
    while (this.#ids.has(id))
    return id
  }
}

/** Adds the parts of the next content. The text at the end of the turn and the one after it are pieces of one text. */
function addContent(turn: Part[], content: readonly Part[]): void {
  for (const [index, part] of content.entries()) {
    const last = turn.at(-1)
    if (index === 0 && last?.kind === 'text' && part.kind === 'text')
      turn[turn.length - 1] = { kind: 'text', text: last.text + part.text }
    else turn.push(part)
  }
}

const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['id', 'name', 'response', 'parts'])

/**
 * Joins consecutive thoughts that another provider has signed as one: those without a signature before one with
 * it, and those with the same signature. Gemini itself does not sign thoughts, but the parts after them.
 */
function withWholeThoughts(parts: readonly Part[]): Part[] {
  const whole: Part[] = []
  let pieces: ThinkingPart[] = []
  for (const part of parts) {
    if (part.kind === 'thinking' && !part.proof) {
      pieces.push(part)
      continue
    }
    const isEnd = part.kind === 'thinking' && part.proof?.protocol !== 'gemini'
    if (isEnd) addSigned(whole, { ...part, text: [...pieces, part].map(({ text }) => text).join('') })
    else whole.push(...pieces, part)
    pieces = []
  }
  return [...whole, ...pieces]
}

function addSigned(whole: Part[], thought: ThinkingPart): void {
  const last = whole.at(-1)
  if (last?.kind === 'thinking' && last.proof?.value === thought.proof?.value)
    whole[whole.length - 1] = { ...last, text: last.text + thought.text }
  else whole.push(thought)
}

/** Elements of a list. A single element without a list is accepted too. */
function elementsOf(scan: ScannedObject, node: Node): readonly Node[] {
  return scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
}

/** Members of a function response in which clients usually put the output of the tool. */
const OUTPUT = 'output'
const ERROR = 'error'

/**
 * Finds the output of a tool: the value of `output` or `error` if that is the only member, otherwise the
 * whole response as it was written.
 */
function outcomeIn(
  scan: ScannedObject,
  response: Node | undefined,
): { readonly text: string; readonly isError: boolean } {
  if (response === undefined) return { text: '', isError: false }
  const whole = scan.parse(response) as Fields
  const [name, ...others] = Object.keys(whole)
  if (name === undefined) return { text: '', isError: false }
  if (others.length > 0 || (name !== OUTPUT && name !== ERROR))
    return {
      text: scan.textOf(response),
      isError: Object.hasOwn(whole, ERROR) && !Object.hasOwn(whole, OUTPUT),
    }
  const value = scan.memberOf(response, name) as Node
  const isText = scan.kindOf(value) === 'string'
  return { text: isText ? (whole[name] as string) : scan.textOf(value), isError: name === ERROR }
}

type Offer = Pick<Conversation, 'tools' | 'webSearch' | 'toolChoice' | 'parallelTools'>

/**
 * Maximum number of searches for a Gemini request, which cannot state one; other protocols require it.
 */
const MAX_SEARCHES = 5
const TOOL_FIELDS: ReadonlySet<string> = new Set(
  ['functionDeclarations', 'googleSearch', 'googleSearchRetrieval'].flatMap(spellingsOf),
)
const SEARCH_FIELDS: ReadonlySet<string> = new Set(spellingsOf('excludeDomains'))

const MODES: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map([
  ['AUTO', 'auto'],
  ['MODE_UNSPECIFIED', 'auto'],
  ['VALIDATED', 'auto'],
  ['ANY', 'any'],
  ['NONE', 'none'],
])

/**
 * Reads the tools and the tool choice. Of the tools that a provider runs, only web search exists in other
 * protocols. Throws `invalid_request` with the path of an invalid value, and if a tool is chosen that is not
 * offered.
 */
function decodeTools(scan: ScannedObject, dropped: DroppedFields): Offer {
  const tools: Tool[] = []
  let webSearch: WebSearch | undefined
  const list = topMember(scan, 'tools')
  const nodes =
    list === undefined ? [] : scan.kindOf(list.node) === 'array' ? scan.elements(list.node) : [list.node]
  for (const [index, node] of nodes.entries()) {
    const path = `tools[${index}]`
    const tool = requireObject(scan.parse(node), path)
    tools.push(...decodeFunctions(scan, node, `${path}.functionDeclarations`, dropped))
    const search =
      memberInEitherSpelling(tool, 'googleSearch') ?? memberInEitherSpelling(tool, 'googleSearchRetrieval')
    if (search !== undefined) webSearch = decodeSearch(asRecord(search) ?? {}, dropped)
    if (hasOtherMembers(tool, TOOL_FIELDS)) reportDropped(dropped, 'tools.server')
  }
  return { webSearch, parallelTools: undefined, ...decodeChoice(scan, tools, dropped) }
}

function decodeSearch(search: Fields, dropped: DroppedFields): WebSearch {
  if (hasOtherMembers(search, SEARCH_FIELDS)) reportDropped(dropped, 'web_search')
  const blocked_domains = memberInEitherSpelling(search, 'excludeDomains')
  return { maxUses: MAX_SEARCHES, ...readSearchDomains({ blocked_domains }) }
}

const DECLARATION_FIELDS: ReadonlySet<string> = new Set(
  ['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema'].flatMap(
    spellingsOf,
  ),
)

function decodeFunctions(scan: ScannedObject, tool: Node, path: string, dropped: DroppedFields): Tool[] {
  const list = valueNodeOf(scan, tool, 'functionDeclarations')
  if (list === undefined) return []
  if (scan.kindOf(list) !== 'array') refuseField(path, 'an array', kindName(scan, list))
  return scan.elements(list).map((node, index) => {
    const at = `${path}[${index}]`
    const given = requireObject(scan.parse(node), at)
    if (
      memberInEitherSpelling(given, 'response') !== undefined ||
      memberInEitherSpelling(given, 'responseJsonSchema') !== undefined
    )
      reportDropped(dropped, 'tools.response')
    if (hasOtherMembers(given, DECLARATION_FIELDS)) reportDropped(dropped, 'tools.unknown')
    const description = memberInEitherSpelling(given, 'description')
    return {
      name: requireText(given['name'], `${at}.name`),
      description:
        description === undefined ? undefined : requireText(description, `${at}.description`) || undefined,
      schema: schemaOf(scan, node, at, dropped),
      strict: undefined,
    }
  })
}

function schemaOf(
  scan: ScannedObject,
  declaration: Node,
  path: string,
  dropped: DroppedFields,
): string | undefined {
  const json = findSchemaObject(scan, declaration, 'parametersJsonSchema', path)
  if (json !== undefined) return scan.textOf(json)
  const openApi = findSchemaObject(scan, declaration, 'parameters', path)
  return openApi === undefined ? undefined : decodeGoogleSchema(scan, openApi, dropped)
}

const CONFIG_FIELDS: ReadonlySet<string> = new Set(spellingsOf('functionCallingConfig'))

function decodeChoice(
  scan: ScannedObject,
  tools: readonly Tool[],
  dropped: DroppedFields,
): Pick<Offer, 'tools' | 'toolChoice'> {
  const config = parseTopMember(scan, 'toolConfig')
  const holder = config === undefined ? {} : requireObject(config, 'toolConfig')
  if (hasOtherMembers(holder, CONFIG_FIELDS)) reportDropped(dropped, 'toolConfig')
  const calling = memberInEitherSpelling(holder, 'functionCallingConfig')
  if (calling === undefined) return { tools, toolChoice: undefined }
  const path = 'toolConfig.functionCallingConfig'
  const fields = requireObject(calling, path)
  const given = memberInEitherSpelling(fields, 'mode')
  const kind =
    given === undefined
      ? undefined
      : requireEnumValue(MODES, requireText(given, `${path}.mode`).toUpperCase(), `${path}.mode`)
  const allowed = memberInEitherSpelling(fields, 'allowedFunctionNames')
  const names = allowed === undefined ? [] : requireArray(allowed, `${path}.allowedFunctionNames`)
  if (tools.length === 0) {
    if (kind === 'any') reportDropped(dropped, 'tool_choice')
    return { tools, toolChoice: undefined }
  }
  if (names.length === 0 || kind === 'none') return { tools, toolChoice: kind && { kind } }
  const offered: ReadonlySet<unknown> = new Set(tools.map(({ name }) => name))
  for (const [index, name] of names.entries())
    if (!offered.has(name))
      refuseField(
        `${path}.allowedFunctionNames[${index}]`,
        `the name of a function in 'tools'`,
        'another name',
      )
  return chosen(tools, kind ?? 'auto', names as readonly string[])
}

/**
 * Restricts the tools to a list of allowed functions. If a call is required and only one function is allowed,
 * that becomes the tool choice; otherwise all other tools are left out.
 */
function chosen(
  tools: readonly Tool[],
  kind: 'auto' | 'any',
  names: readonly string[],
): { tools: readonly Tool[]; toolChoice: ToolChoice } {
  const [only, ...others] = names
  if (kind === 'any' && only !== undefined && others.length === 0)
    return { tools, toolChoice: { kind: 'tool', name: only } }
  const allowed = new Set(names)
  return { tools: tools.filter(({ name }) => allowed.has(name)), toolChoice: { kind } }
}
