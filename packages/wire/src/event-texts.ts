import {
  type AnswerContext,
  type FoundText,
  type RepeatingSpan,
  type PathStep,
  stringMember,
  type TextPlace,
  textsOfEvent,
} from './found-texts.ts'
import { textsOfMediaEvent } from './media-texts.ts'
import type { AnswerTexts } from './text-finder.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { ClientProtocol } from './protocols.ts'

/** A stream with texts: an answer in a protocol, or images or a transcript in events. */
export type StreamKind = ClientProtocol | 'images' | 'transcript'

/** What is known of a stream. */
export interface StreamContext extends Pick<AnswerContext, 'signsReasoning'> {
  readonly dialect: StreamKind
}

/** A text of an answer that arrives in pieces, in several events of a stream. */
export interface StreamedText {
  /**
   * Identifies the text in the stream. It begins with the index of the block, item or candidate to which the
   * text belongs, and a slash.
   */
  readonly key: string
  readonly place: TextPlace
  readonly isSigned: boolean
  /** Whether the text is JSON: the arguments of a tool. */
  readonly isJson: boolean
  /** The key of another text that this one repeats, such as the segments of a transcript. */
  readonly repeats?: string
  /** Writes an event with another piece of the text, including the blank line after it. */
  frame(text: string): string
}

/** A text that an event contains. */
export interface EventText extends FoundText {
  /** The text to which this piece belongs; undefined if the text in the event is complete. */
  readonly channel?: StreamedText
  /** Whether the text repeats one that arrived in pieces before. */
  readonly isRepeated?: boolean
  /** Whether the text of `channel` is complete after this piece. */
  readonly isLast?: boolean
}

/** The texts in an event of a stream, and the texts that are complete when the event arrives. */
export interface EventTexts {
  /** The texts in the order of their bytes. */
  readonly texts: readonly EventText[]
  /**
   * Beginnings of the keys of the texts that are complete before this event. A text whose last piece is in
   * this event is marked by `isLast` instead.
   */
  readonly ends: readonly string[]
  /** The same for texts of which the provider states the end. Some providers state it in every event. */
  readonly statedEnds?: readonly string[]
  readonly repeating: readonly RepeatingSpan[]
  /** Offsets of the event's `sequence_number`, in a protocol that has one. */
  readonly sequence?: readonly [from: number, to: number]
}

/**
 * Reads an event in one protocol: which of its texts are pieces of longer texts, and which texts are complete
 * before the event.
 */
type EventReader = (
  scan: ScannedObject,
  found: AnswerTexts,
) => {
  readonly ends: readonly string[]
  readonly statedEnds?: readonly string[]
  /**
   * Returns a text of the event. If it is a piece, it names the longer text that it continues. `way` is the path from the
   * root of the event to the text.
   */
  readonly read: (text: FoundText, way: readonly PathStep[]) => EventText
  readonly sequence?: readonly [from: number, to: number]
}

const ALL = ['']

/**
 * Finds the texts in an event of a stream, in the client's protocol. The path of a text in the event decides
 * whether it is a piece of a longer text, so that members which the API does not describe can contain pieces
 * too.
 */
export function eventTexts(scan: ScannedObject, origin: StreamContext): EventTexts {
  const { dialect, signsReasoning } = origin
  const found =
    dialect === 'images' || dialect === 'transcript'
      ? textsOfMediaEvent(scan)
      : textsOfEvent(scan, { dialect, signsReasoning })
  const { read, ...event } = READERS[dialect](scan, found)
  const texts = found.texts.map((text) => read(text, text.way))
  return { texts, repeating: found.repeating, ...event }
}

/** Whether a text of a delta is a piece of a longer text. */
function isPiece({ isData, isNumber, isWhole }: FoundText): boolean {
  return !isData && !isNumber && !isWhole
}

/** Marks a text of an event as a piece of the longer text with this key. */
function pieceOf(text: FoundText, key: string, frame: StreamedText['frame'], isLast = false): EventText {
  const { place, isSigned, isJson } = text
  return { ...text, channel: { key, place, isSigned, isJson, frame }, ...(isLast && { isLast }) }
}

/** Writes the path of a piece as a name. The name is the same in all events with a piece of the same text. */
function nameOf(scan: ScannedObject, steps: readonly PathStep[]): string {
  return steps
    .map(({ name }, at) => name ?? `[${steps[at + 1] ? identityOf(scan, steps[at + 1]?.of) : ''}]`)
    .join('.')
}

/**
 * The `index` of an element of a list, otherwise its `type`. This recognizes the same element in several
 * events.
 */
function identityOf(scan: ScannedObject, element: Node | undefined): string {
  for (const member of ['index', 'type']) {
    const node = element === undefined ? undefined : scan.memberOf(element, member)
    if (node !== undefined && !scan.isContainer(node)) return scan.textOf(node)
  }
  return ''
}

/** The JSON of an object that contains only this text, at this path. */
function objectWith(scan: ScannedObject, steps: readonly PathStep[], text: string): string {
  return steps.reduceRight((json, { name, of }, at) => {
    if (name === undefined) return `[${json}]`
    const isElement = steps[at - 1] !== undefined && steps[at - 1]?.name === undefined
    return `{${isElement ? membersOf(scan, of, ['type', 'index']) : ''}${JSON.stringify(name)}:${json}}`
  }, JSON.stringify(text))
}

/** Members of an object as JSON, with a comma after each. Members that are objects or lists are left out. */
function membersOf(scan: ScannedObject, object: Node, names: readonly string[]): string {
  return names
    .map((name) => {
      const node = scan.memberOf(object, name)
      if (node === undefined || scan.isContainer(node)) return ''
      return `${JSON.stringify(name)}:${scan.textOf(node)},`
    })
    .join('')
}

/** The ends of choices or candidates that have a reason for their end. */
function statedEndsOf(
  scan: ScannedObject,
  choices: readonly Node[],
  reason: string,
): Pick<EventTexts, 'statedEnds'> {
  const ended = choices.filter((choice) => (stringMember(scan, choice, reason) ?? '') !== '')
  return ended.length === 0
    ? {}
    : { statedEnds: ended.map((choice) => `${numberIn(scan, choice, 'index')}/`) }
}

const HEAD = ['id', 'object', 'created', 'model'] as const

const chat: EventReader = (scan) => ({
  ends: [],
  ...statedEndsOf(scan, objectsIn(scan, 'choices'), 'finish_reason'),
  read(text, way) {
    const [choices, element, member] = way
    if (choices?.name !== 'choices' || element?.name !== undefined || member?.name === undefined) return text
    const isDelta = (member.name === 'delta' || member.name === 'message') && way.length > 3
    const steps = way.slice(isDelta ? 3 : 2)
    if (!isPiece(text) || (!isDelta && steps.length > 1)) return text
    const index = numberIn(scan, member.of, 'index')
    return pieceOf(text, `${index}/${nameOf(scan, steps)}`, (piece) => {
      const object = objectWith(scan, steps, piece)
      const content = isDelta ? `"delta":${object}` : object.slice(1, -1)
      return `data: {${membersOf(scan, scan.root, HEAD)}"choices":[{"index":${index},${content},"finish_reason":null}]}\n\n`
    })
  },
})

const messages: EventReader = (scan) => {
  const type = stringMember(scan, scan.root, 'type') ?? ''
  const index = numberIn(scan, scan.root, 'index')
  const isOver = type === 'message_delta' || type === 'message_stop'
  return {
    ends: isOver ? ALL : type === 'content_block_stop' ? [`${index}/`] : [],
    read(text, [root, ...steps]) {
      const isDelta = root?.name === 'delta' && !isOver
      // The texts of a block itself are continued by its deltas; texts deeper in the block are complete.
      const isBegun = root?.name === 'content_block' && steps.length === 1
      const [first] = steps
      if (!first || !isPiece(text) || !(isDelta || isBegun)) return text
      const stated = stringMember(scan, first.of, 'type') ?? ''
      const delta = JSON.stringify(isDelta ? stated : `${stated}_delta`)
      return pieceOf(text, `${index}/${nameOf(scan, steps)}`, (piece) => {
        const members = objectWith(scan, steps, piece).slice(1)
        return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":${delta},${members}}\n\n`
      })
    },
  }
}

/**
 * Types of events with a piece of a text (`delta`), and of events that repeat the whole text after its pieces
 * (`done`).
 */
const EVENT_TYPE = /^(?:response\.)?([\w.]+)\.(delta|done)$/
/** Types of events that contain the whole response at its end. */
const LAST = /^response\.(?:completed|incomplete|failed)$/
/** Members of events that contain texts which have arrived in pieces before. */
const REPEATED: ReadonlySet<string | undefined> = new Set(['response', 'item', 'part'])
const responses: EventReader = (scan, texts) => {
  const type = stringMember(scan, scan.root, 'type') ?? ''
  const [, stem = '', form = ''] = EVENT_TYPE.exec(type) ?? []
  const output = itemOf(scan)
  const channel = `${output}/${stem}${indexesOf(scan)}`
  // Also events of calls that the shape does not describe.
  const isOfTool = /_call_|_arguments$/.test(stem)
  const number = scan.span('sequence_number')
  const ends = LAST.test(type)
    ? ALL
    : form !== 'done'
      ? []
      : scan.has('item')
        ? [`${output}/`]
        : [`${channel} delta`]
  return {
    ends,
    ...(number && { sequence: [number.start, number.end] as const }),
    read(text, way) {
      const root = way[0]?.name
      if (REPEATED.has(root)) return { ...text, isRepeated: true }
      if (form === '') return text
      const own: FoundText =
        isOfTool && way.length === 1
          ? { ...text, place: 'tool_arguments', isJson: stem.endsWith('arguments') }
          : text
      if (form === 'done') return { ...own, isRepeated: true }
      if (!isPiece(own)) return own
      return pieceOf(
        own,
        `${channel} ${nameOf(scan, way)}`,
        (piece) => `event: ${type}\ndata: ${dataWithPiece(scan, texts, own, piece)}\n\n`,
      )
    },
  }
}

/** The item of an event: its index, or its id where events have no index, as those of llama.cpp. */
function itemOf(scan: ScannedObject): number | string {
  if (scan.has('output_index')) return numberIn(scan, scan.root, 'output_index')
  const item = scan.span('item')?.node
  const idIn = (name: string): string | undefined =>
    item === undefined ? undefined : stringMember(scan, item, name)
  return stringMember(scan, scan.root, 'item_id') ?? idIn('id') ?? idIn('call_id') ?? 0
}

/**
 * The indexes of an event except `output_index`, as a part of the key of its text. An index of 0 is left out,
 * because events may omit it.
 */
function indexesOf(scan: ScannedObject): string {
  let indexes = ''
  for (const key of [...scan.members.keys()].toSorted()) {
    const index = key.endsWith('_index') && key !== 'output_index' ? numberIn(scan, scan.root, key) : 0
    if (index > 0) indexes += ` ${key} ${index}`
  }
  return indexes
}

// Writes the data of an event in which the piece of one text is replaced and all other texts are empty.
function dataWithPiece(
  { bytes }: ScannedObject,
  { texts, repeating }: AnswerTexts,
  own: FoundText,
  piece: string,
): string {
  const parts = texts.map(
    ({ from, to }): RepeatingSpan => [from, to, from === own.from ? JSON.stringify(piece) : '""'],
  )
  let data = ''
  let at = 0
  for (const [from, to, instead] of [...parts, ...repeating].toSorted((a, b) => a[0] - b[0])) {
    data += bytes.toString('utf8', at, from) + instead
    at = to
  }
  return data + bytes.toString('utf8', at)
}

const gemini: EventReader = (scan) => {
  const { ends, last } = partsOf(scan)
  return {
    ends,
    ...statedEndsOf(scan, objectsIn(scan, 'candidates'), 'finishReason'),
    read(text, way) {
      const [candidates, element, content, parts, one, member] = way
      const isPart = content?.name === 'content' && parts?.name === 'parts' && one?.name === undefined
      if (candidates?.name !== 'candidates' || element?.name !== undefined || !isPart || !member) return text
      const index = numberIn(scan, content.of, 'index')
      const steps = way.slice(5)
      const leaf = steps.at(-1)
      const frame =
        (object: (piece: string) => string): StreamedText['frame'] =>
        (piece) =>
          `data: {"candidates":[{"content":{"parts":[${object(piece)}],"role":"model"},"index":${index}}]}\n\n`
      if (member.name === 'text' && steps.length === 1) {
        const kind = kindOf(scan, member.of)
        const thought = kind === 'thought' ? ',"thought":true' : ''
        return pieceOf(
          text,
          `${index}/${kind}`,
          frame((piece) => `{"text":${JSON.stringify(piece)}${thought}}`),
          last.has(member.of),
        )
      }
      // Arguments that arrive in pieces: each piece states the path of the value to which it belongs.
      if (member.name !== 'functionCall' || leaf?.name !== 'stringValue' || text.isData) return text
      const path = membersOf(scan, leaf.of, ['jsonPath'])
      return pieceOf(
        text,
        `${index}/call ${path}`,
        frame(
          (piece) => `{"functionCall":{"partialArgs":[{${path}"stringValue":${JSON.stringify(piece)}}]}}`,
        ),
        !isTrue(scan, leaf.of, 'willContinue'),
      )
    },
  }
}

const KINDS = ['text', 'thought'] as const

function kindOf(scan: ScannedObject, part: Node): (typeof KINDS)[number] | 'other' {
  if (stringMember(scan, part, 'text') === undefined) return 'other'
  return isTrue(scan, part, 'thought') ? 'thought' : 'text'
}

/**
 * The texts that are complete because of the parts in a chunk: a text ends where a part of another kind
 * begins.
 */
function partsOf(scan: ScannedObject): {
  readonly ends: readonly string[]
  readonly last: ReadonlySet<Node>
} {
  const ends: string[] = []
  const last = new Set<Node>()
  for (const candidate of objectsIn(scan, 'candidates')) {
    const index = numberIn(scan, candidate, 'index')
    const content = scan.memberOf(candidate, 'content')
    const list =
      content !== undefined && scan.kindOf(content) === 'object' ? scan.memberOf(content, 'parts') : undefined
    let before: { readonly part: Node; readonly kind: string } | undefined
    for (const part of list === undefined ? [] : objectsOf(scan, list)) {
      const kind = kindOf(scan, part)
      if (!before) ends.push(...KINDS.filter((one) => one !== kind).map((one) => `${index}/${one}`))
      else if (before.kind !== kind) last.add(before.part)
      before = { part, kind }
    }
  }
  return { ends, last }
}

/** The key of the text of a transcript. */
export const TRANSCRIPT_TEXT = '0/text'

const media: EventReader = (scan, texts) => {
  const type = stringMember(scan, scan.root, 'type')
  return {
    ends: type === 'transcript.text.done' ? ALL : [],
    read(found, way) {
      // All texts about media are output, described by the shape or not.
      const text: FoundText = { ...found, place: 'output', isSigned: false, isJson: false }
      const name = way.length === 1 ? way[0]?.name : undefined
      if (type === 'transcript.text.delta' && name === 'delta')
        return pieceOf(text, TRANSCRIPT_TEXT, transcriptDelta)
      if (name !== 'text') return text
      if (type === 'transcript.text.done') return { ...text, isRepeated: true }
      if (type !== 'transcript.text.segment') return text
      const piece = pieceOf(
        text,
        '0/segment',
        (rest) => `data: ${dataWithPiece(scan, texts, text, rest)}\n\n`,
      )
      return { ...piece, channel: { ...(piece.channel as StreamedText), repeats: TRANSCRIPT_TEXT } }
    },
  }
}

/** Writes an event with a piece of a transcript. */
export function transcriptDelta(text: string): string {
  return `data: ${JSON.stringify({ type: 'transcript.text.delta', delta: text })}\n\n`
}

function isTrue(scan: ScannedObject, object: Node, name: string): boolean {
  const value = scan.memberOf(object, name)
  return value !== undefined && scan.kindOf(value) === 'true'
}

/** The objects in a top-level list. */
function objectsIn(scan: ScannedObject, name: string): Node[] {
  const list = scan.span(name)
  return list ? objectsOf(scan, list.node) : []
}

function objectsOf(scan: ScannedObject, list: Node): Node[] {
  return scan.kindOf(list) === 'array'
    ? scan.elements(list).filter((one) => scan.kindOf(one) === 'object')
    : []
}

/** The value of a member that is a whole number; 0 for any other value, or without the member. */
function numberIn(scan: ScannedObject, object: Node, name: string): number {
  const node = scan.memberOf(object, name)
  const value = node === undefined ? 0 : Number(scan.textOf(node))
  return Number.isSafeInteger(value) && value >= 0 ? value : 0
}

const READERS: Readonly<Record<StreamKind, EventReader>> = {
  chat,
  messages,
  responses,
  gemini,
  images: media,
  transcript: media,
}
