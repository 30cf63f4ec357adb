import { generatedTexts, stringIn, type FoundText, type TextPlace } from './guarded-texts.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { ClientProtocol } from './protocols.ts'

/** A text of an answer that arrives in pieces over several events. */
export interface Channel {
  /** Identifies the text. It begins with the key of its group and a slash. */
  readonly key: string
  readonly place: TextPlace
  readonly isSigned: boolean
  /** Whether the text is JSON, the arguments of a tool. */
  readonly isJson: boolean
  /** Writes an event with another piece of the text, including the blank line after it. */
  frame(text: string): string
}

/** A text that an event contains. */
export interface EventText extends FoundText {
  /** The text to which this piece belongs; undefined if the text in the event is complete. */
  readonly channel?: Channel
  /** Whether the text repeats one that arrived in pieces before. */
  readonly isRepeated?: boolean
  /** Whether the text of the channel is complete after this piece. */
  readonly isLast?: boolean
}

/** The texts of an event, and which texts end with it. */
export interface EventTexts {
  /** The texts in the order of their bytes. */
  readonly texts: readonly EventText[]
  /**
   * Beginnings of the keys of texts that have ended before this event. A text may also end with its own last
   * piece: see `isLast`.
   */
  readonly ends: readonly string[]
  /** Offsets of lists that repeat texts token by token, each with the JSON text that can replace it. */
  readonly logprobs: readonly (readonly [from: number, to: number, instead: string])[]
  /** Offsets of the event's number, in protocols that number events. */
  readonly sequence?: readonly [from: number, to: number]
}

/** Facts about a stream that its events do not state. */
export interface AnswerOrigin {
  /** Whether the provider signs reasoning, so that it must not be changed. */
  readonly signsReasoning: boolean
}

type EventReader = (scan: ScannedObject, origin: AnswerOrigin) => EventTexts

const NOTHING: EventTexts = { texts: [], ends: [], logprobs: [] }
const ALL = ['']

/** Finds the texts in an event of a stream in the client's protocol. */
export function eventTexts(dialect: ClientProtocol, scan: ScannedObject, origin: AnswerOrigin): EventTexts {
  return READERS[dialect](scan, origin)
}

/** Members of chat deltas that contain pieces of a text, and whether it is reasoning. */
const CHAT_PIECES: ReadonlyMap<string, { readonly isReasoning: boolean }> = new Map([
  ['content', { isReasoning: false }],
  ['refusal', { isReasoning: false }],
  ['text', { isReasoning: false }],
  ['reasoning', { isReasoning: true }],
  ['reasoning_content', { isReasoning: true }],
])

function chatTexts(scan: ScannedObject, { signsReasoning }: AnswerOrigin): EventTexts {
  const choices = scan.span('choices')
  if (!choices || scan.kindOf(choices.node) !== 'array') return NOTHING
  const texts: EventText[] = []
  const ends: string[] = []
  const logprobs: (readonly [number, number, string])[] = []
  let head: string | undefined
  const headText = (): string =>
    (head ??= ['id', 'object', 'created', 'model']
      .flatMap((name) => {
        const member = scan.span(name)
        return member ? [`${JSON.stringify(name)}:${scan.textOf(member.node)},`] : []
      })
      .join(''))
  for (const choice of scan.elements(choices.node)) {
    if (scan.kindOf(choice) !== 'object') continue
    const index = numberIn(scan, choice, 'index')
    const channel = (
      name: string,
      delta: (text: string) => string,
      facts: Partial<Pick<Channel, 'place' | 'isSigned' | 'isJson'>> = {},
      isDelta = true,
    ): Channel => ({
      key: `${index}/${name}`,
      place: 'output',
      isSigned: false,
      isJson: false,
      ...facts,
      frame(text) {
        const content = isDelta ? `"delta":{${delta(text)}}` : delta(text)
        return `data: {${headText()}"choices":[{"index":${index},${content},"finish_reason":null}]}\n\n`
      },
    })
    const piece = (node: Node, one: Channel): void => {
      texts.push({
        ...spanOf(scan, node),
        place: one.place,
        isSigned: one.isSigned,
        isJson: one.isJson,
        channel: one,
      })
    }
    const readDelta = (object: Node, isDelta: boolean): void => {
      for (const { key, node } of scan.entries(object)) {
        const known = CHAT_PIECES.get(key)
        if (known && scan.kindOf(node) === 'string') {
          const isSigned = known.isReasoning && signsReasoning
          piece(
            node,
            channel(key, (text) => `${JSON.stringify(key)}:${JSON.stringify(text)}`, { isSigned }, isDelta),
          )
        } else if (key === 'content' && scan.kindOf(node) === 'array') readContent(node)
        else if (key === 'audio' && scan.kindOf(node) === 'object') readAudio(node)
        else if (key === 'tool_calls' && scan.kindOf(node) === 'array') readCalls(node)
        else if (key === 'reasoning_details' && scan.kindOf(node) === 'array') readDetails(node)
        else if (isDelta && key === 'function_call' && scan.kindOf(node) === 'object') readFunctionCall(node)
        else if (isDelta) texts.push(...generatedTexts(scan, node, key))
      }
    }
    // Some providers stream lists of blocks. The texts in all events then are one text, and the thoughts
    // another.
    const readContent = (blocks: Node): void => {
      for (const block of scan.elements(blocks)) {
        const kind = scan.kindOf(block) === 'object' ? stringIn(scan, block, 'type') : undefined
        const text = kind === undefined ? undefined : scan.memberOf(block, 'text')
        const thoughts = kind === 'thinking' ? scan.memberOf(block, 'thinking') : undefined
        if (text !== undefined && scan.kindOf(text) === 'string') piece(text, blockChannel('content', ''))
        else if (thoughts !== undefined && scan.kindOf(thoughts) === 'array')
          for (const one of scan.elements(thoughts)) {
            const thought = scan.kindOf(one) === 'object' ? scan.memberOf(one, 'text') : undefined
            if (thought !== undefined && scan.kindOf(thought) === 'string')
              piece(thought, blockChannel('content thinking', 'thinking'))
          }
        else texts.push(...generatedTexts(scan, block, 'content'))
      }
    }
    const blockChannel = (name: string, within: '' | 'thinking'): Channel => {
      const block = (text: string): string => `{"type":"text","text":${JSON.stringify(text)}}`
      const rest = (text: string): string =>
        within === '' ? block(text) : `{"type":"thinking","thinking":[${block(text)}]}`
      return channel(name, (text) => `"content":[${rest(text)}]`, {
        isSigned: within !== '' && signsReasoning,
      })
    }
    const readAudio = (audio: Node): void => {
      const node = scan.memberOf(audio, 'transcript')
      if (node === undefined || scan.kindOf(node) !== 'string') return
      piece(
        node,
        channel('audio', (text) => `"audio":{"transcript":${JSON.stringify(text)}}`),
      )
    }
    const readFunctionCall = (call: Node): void => {
      const node = scan.memberOf(call, 'arguments')
      if (node === undefined || scan.kindOf(node) !== 'string') return
      const rest = (text: string): string => `"function_call":{"arguments":${JSON.stringify(text)}}`
      piece(node, channel('function_call', rest, { place: 'tool_arguments', isJson: true }))
    }
    const readCalls = (calls: Node): void => {
      for (const call of scan.elements(calls)) {
        if (scan.kindOf(call) !== 'object') continue
        const at = numberIn(scan, call, 'index')
        for (const [part, member] of CALL_PIECES) {
          const of = scan.memberOf(call, part)
          const node =
            of !== undefined && scan.kindOf(of) === 'object' ? scan.memberOf(of, member) : undefined
          if (node === undefined || scan.kindOf(node) !== 'string') continue
          const rest = (text: string): string =>
            `"tool_calls":[{"index":${at},"${part}":{"${member}":${JSON.stringify(text)}}}]`
          piece(
            node,
            channel(`call ${at} ${part}`, rest, { place: 'tool_arguments', isJson: member === 'arguments' }),
          )
        }
      }
    }
    const readDetails = (details: Node): void => {
      for (const detail of scan.elements(details)) {
        if (scan.kindOf(detail) !== 'object') continue
        const at = numberIn(scan, detail, 'index')
        const type = stringIn(scan, detail, 'type') ?? ''
        for (const member of ['text', 'summary']) {
          const node = scan.memberOf(detail, member)
          if (node === undefined || scan.kindOf(node) !== 'string') continue
          const rest = (text: string): string =>
            `"reasoning_details":[{"type":${JSON.stringify(type)},"index":${at},"${member}":${JSON.stringify(text)}}]`
          piece(node, channel(`detail ${at} ${member}`, rest, { isSigned: signsReasoning }))
        }
      }
    }
    for (const { key, node } of scan.entries(choice)) {
      if (key === 'logprobs') {
        if (scan.kindOf(node) === 'object') logprobs.push([scan.startOf(node), scan.endOf(node), 'null'])
      } else if ((key === 'delta' || key === 'message') && scan.kindOf(node) === 'object')
        readDelta(node, true)
    }
    readDelta(choice, false)
    if ((stringIn(scan, choice, 'finish_reason') ?? '') !== '') ends.push(`${index}/`)
  }
  return { texts: texts.sort((a, b) => a.from - b.from), ends, logprobs }
}

/** Where calls contain their arguments in chat. */
const CALL_PIECES = [
  ['function', 'arguments'],
  ['custom', 'input'],
] as const

/** Members of messages deltas that contain pieces of a text. */
const MESSAGE_PIECES = [
  { name: 'text', type: 'text_delta', place: 'output', isReasoning: false, isJson: false },
  { name: 'thinking', type: 'thinking_delta', place: 'output', isReasoning: true, isJson: false },
  {
    name: 'partial_json',
    type: 'input_json_delta',
    place: 'tool_arguments',
    isReasoning: false,
    isJson: true,
  },
] as const

function messageTexts(scan: ScannedObject, { signsReasoning }: AnswerOrigin): EventTexts {
  const index = numberIn(scan, scan.root, 'index')
  const object = scan.span('delta') ?? scan.span('content_block')
  switch (scan.value('type')) {
    case 'content_block_stop':
      return { ...NOTHING, ends: [`${index}/`] }
    case 'message_delta':
    case 'message_stop':
      return { ...NOTHING, ends: ALL }
    case 'content_block_start':
    case 'content_block_delta':
      break
    default:
      return NOTHING
  }
  if (!object || scan.kindOf(object.node) !== 'object') return NOTHING
  const texts: EventText[] = []
  for (const { key, node } of scan.entries(object.node)) {
    const piece = MESSAGE_PIECES.find(({ name }) => name === key)
    if (!piece || scan.kindOf(node) !== 'string') continue
    const { place, isJson, type, name } = piece
    const channel: Channel = {
      key: `${index}/${name}`,
      place,
      isSigned: piece.isReasoning && signsReasoning,
      isJson,
      frame: (text) =>
        `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${name}":${JSON.stringify(text)}}}\n\n`,
    }
    texts.push({ ...spanOf(scan, node), place, isSigned: channel.isSigned, isJson, channel })
  }
  if (texts.length > 0) return { ...NOTHING, texts }
  return { ...NOTHING, texts: generatedTexts(scan, object.node, object.key) }
}

/** Pieces of items in responses streams, by the type of their events without `response.` and `.delta`. */
const RESPONSE_PIECES: ReadonlyMap<string, { readonly place: TextPlace; readonly isJson: boolean }> = new Map<
  string,
  { readonly place: TextPlace; readonly isJson: boolean }
>([
  ['output_text', { place: 'output', isJson: false }],
  ['refusal', { place: 'output', isJson: false }],
  ['reasoning_text', { place: 'output', isJson: false }],
  ['reasoning_summary_text', { place: 'output', isJson: false }],
  ['audio.transcript', { place: 'output', isJson: false }],
  ['output_audio_transcript', { place: 'output', isJson: false }],
  ['function_call_arguments', { place: 'tool_arguments', isJson: true }],
  ['mcp_call_arguments', { place: 'tool_arguments', isJson: true }],
  ['custom_tool_call_input', { place: 'tool_arguments', isJson: false }],
  ['code_interpreter_call_code', { place: 'tool_arguments', isJson: false }],
])

/** Members of `.done` events that repeat a text that arrived in pieces. */
const DONE = ['text', 'refusal', 'transcript', 'arguments', 'input', 'code'] as const
const EVENT_TYPE = /^response\.(.+)\.(delta|done)$/
/** Matches the types of events that contain the whole response at its end. */
const LAST = /^response\.(?:completed|incomplete|failed)$/

function responseTexts(scan: ScannedObject, origin: AnswerOrigin): EventTexts {
  const type = stringIn(scan, scan.root, 'type') ?? ''
  const number = scan.span('sequence_number')
  const sequence = number && ([number.start, number.end] as const)
  const found = responseEvent(scan, type, origin)
  return sequence ? { ...found, sequence } : found
}

function responseEvent(scan: ScannedObject, type: string, { signsReasoning }: AnswerOrigin): EventTexts {
  const [, stem = '', form = ''] = EVENT_TYPE.exec(type) ?? []
  const output = numberIn(scan, scan.root, 'output_index')
  const part = scan.span('content_index')
    ? numberIn(scan, scan.root, 'content_index')
    : numberIn(scan, scan.root, 'summary_index')
  const key = `${output}/${stem} ${part}`
  const piece = RESPONSE_PIECES.get(stem)
  const isSigned = signsReasoning && stem.startsWith('reasoning')
  const logprobs = listIn(scan, 'logprobs')
  if (piece && form === 'delta') {
    const member = scan.span('delta')
    if (!member || scan.kindOf(member.node) !== 'string') return NOTHING
    const channel: Channel = {
      key,
      ...piece,
      isSigned,
      frame: (text) => responseFrame(scan, type, member, logprobs, text),
    }
    const text = { from: member.start, to: member.end, ...piece, isSigned, channel }
    return { texts: [text], ends: [], logprobs }
  }
  if (piece && form === 'done') {
    const texts = DONE.flatMap((name): EventText[] => {
      const member = scan.span(name)
      if (!member || scan.kindOf(member.node) !== 'string') return []
      return [{ from: member.start, to: member.end, ...piece, isSigned, isRepeated: true }]
    })
    return { texts, ends: [key], logprobs }
  }
  const response = scan.span('response')
  if (response && scan.kindOf(response.node) === 'object') {
    const items = scan.memberOf(response.node, 'output')
    const texts = items === undefined ? [] : repeatedTexts(scan, items, 'output', signsReasoning)
    const lists = items === undefined ? [] : nestedLogprobs(scan, items)
    return { texts, ends: LAST.test(type) ? ALL : [], logprobs: lists }
  }
  for (const name of ['item', 'part'] as const) {
    const member = scan.span(name)
    if (!member) continue
    const texts = repeatedTexts(scan, member.node, name, signsReasoning)
    const ends = form !== 'done' ? [] : name === 'item' ? [`${output}/`] : []
    return { texts, ends, logprobs: nestedLogprobs(scan, member.node) }
  }
  const texts = ['annotation', 'delta'].flatMap((name) => {
    const member = scan.span(name)
    return member && scan.isContainer(member.node) ? generatedTexts(scan, member.node, name) : []
  })
  return { texts, ends: [], logprobs: [] }
}

function repeatedTexts(scan: ScannedObject, node: Node, name: string, signsReasoning: boolean): EventText[] {
  return generatedTexts(scan, node, name, signsReasoning).map((text) => ({ ...text, isRepeated: true }))
}

// Writes the same event with another piece, and without the list that repeats the piece token by token.
function responseFrame(
  { bytes }: ScannedObject,
  type: string,
  { start, end }: { readonly start: number; readonly end: number },
  logprobs: EventTexts['logprobs'],
  text: string,
): string {
  const parts = [[start, end, JSON.stringify(text)] as const, ...logprobs].toSorted((a, b) => a[0] - b[0])
  let data = ''
  let at = 0
  for (const [from, to, instead] of parts) {
    data += bytes.toString('utf8', at, from) + instead
    at = to
  }
  return `event: ${type}\ndata: ${data}${bytes.toString('utf8', at)}\n\n`
}

function listIn(scan: ScannedObject, name: string): (readonly [number, number, string])[] {
  const member = scan.span(name)
  return member && scan.kindOf(member.node) === 'array' ? [[member.start, member.end, '[]']] : []
}

function nestedLogprobs(scan: ScannedObject, node: Node): (readonly [number, number, string])[] {
  const kind = scan.kindOf(node)
  if (kind === 'array') return scan.elements(node).flatMap((one) => nestedLogprobs(scan, one))
  if (kind !== 'object') return []
  return scan.entries(node).flatMap(({ key, node: value }) => {
    if (key !== 'logprobs') return nestedLogprobs(scan, value)
    return scan.kindOf(value) === 'array' ? [[scan.startOf(value), scan.endOf(value), '[]'] as const] : []
  })
}

function geminiTexts(scan: ScannedObject): EventTexts {
  const candidates = scan.span('candidates')
  if (!candidates || scan.kindOf(candidates.node) !== 'array') return NOTHING
  const texts: EventText[] = []
  const ends: string[] = []
  const logprobs: (readonly [number, number, string])[] = []
  for (const candidate of scan.elements(candidates.node)) {
    if (scan.kindOf(candidate) !== 'object') continue
    const index = numberIn(scan, candidate, 'index')
    for (const { key, node } of scan.entries(candidate)) {
      if (key === 'logprobsResult') logprobs.push([scan.startOf(node), scan.endOf(node), '{}'])
      else if (key === 'content' && scan.kindOf(node) === 'object') {
        const read = geminiParts(scan, node, index)
        texts.push(...read.texts)
        ends.push(...read.ends)
      } else if (key === 'groundingMetadata' || key === 'citationMetadata')
        texts.push(...generatedTexts(scan, node, key))
    }
    if ((stringIn(scan, candidate, 'finishReason') ?? '') !== '') ends.push(`${index}/`)
  }
  return { texts: texts.sort((a, b) => a.from - b.from), ends, logprobs }
}

const KINDS = ['text', 'thought'] as const

/** Finds texts in Gemini's parts. A text ends where a part of another kind begins. */
function geminiParts(scan: ScannedObject, content: Node, index: number): Pick<EventTexts, 'texts' | 'ends'> {
  const parts = scan.memberOf(content, 'parts')
  if (parts === undefined || scan.kindOf(parts) !== 'array') return { texts: [], ends: [] }
  const texts: EventText[] = []
  const ends = new Set<string>()
  let last: string | undefined
  for (const part of scan.elements(parts)) {
    if (scan.kindOf(part) !== 'object') continue
    const text = scan.memberOf(part, 'text')
    const isText = text !== undefined && scan.kindOf(text) === 'string'
    const kind = isText ? (isTrue(scan, part, 'thought') ? 'thought' : 'text') : 'other'
    if (last === undefined) for (const one of KINDS) if (one !== kind) ends.add(`${index}/${one}`)
    if (last !== undefined && last !== kind) markLast(texts, `${index}/${last}`)
    last = kind
    if (!isText) {
      texts.push(...generatedTexts(scan, part, 'part'))
      continue
    }
    const thought = kind === 'thought' ? ',"thought":true' : ''
    const channel: Channel = {
      key: `${index}/${kind}`,
      place: 'output',
      isSigned: false,
      isJson: false,
      frame: (piece) =>
        `data: {"candidates":[{"content":{"parts":[{"text":${JSON.stringify(piece)}${thought}}],"role":"model"},"index":${index}}]}\n\n`,
    }
    texts.push({ ...spanOf(scan, text), place: 'output', isSigned: false, isJson: false, channel })
  }
  return { texts, ends: [...ends] }
}

function markLast(texts: EventText[], key: string): void {
  const at = texts.findLastIndex(({ channel }) => channel?.key === key)
  const text = texts[at]
  if (text) texts[at] = { ...text, isLast: true }
}

function isTrue(scan: ScannedObject, object: Node, name: string): boolean {
  const value = scan.memberOf(object, name)
  return value !== undefined && scan.kindOf(value) === 'true'
}

/** Value of a member that is a whole number; 0 for any other value. */
function numberIn(scan: ScannedObject, object: Node, name: string): number {
  const node = scan.memberOf(object, name)
  const value = node === undefined ? 0 : Number(scan.textOf(node))
  return Number.isSafeInteger(value) && value >= 0 ? value : 0
}

function spanOf(scan: ScannedObject, node: Node): { readonly from: number; readonly to: number } {
  return { from: scan.startOf(node), to: scan.endOf(node) }
}

const READERS: Readonly<Record<ClientProtocol, EventReader>> = {
  chat: chatTexts,
  messages: messageTexts,
  responses: responseTexts,
  gemini: geminiTexts,
}
