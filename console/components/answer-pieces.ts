import {
  chatToolCallPiece,
  geminiContentPieces,
  responsesItemPieces,
  contentPieces,
} from './request-turns.ts'
import {
  textOrJson,
  isJsonObject,
  type JsonObject,
  objectsInList,
  parsedJson,
  type ConversationPiece,
} from './conversation-pieces.ts'

/** The content of a response in any of the protocols, from one JSON text or from server-sent events. */
export function piecesOfAnswer(answer: string): readonly ConversationPiece[] {
  const whole = parsedJson(answer)
  if (Array.isArray(whole)) return merged(objectsInList(whole).flatMap(geminiAnswer))
  if (isJsonObject(whole)) return wholeAnswer(whole)
  const events = answer
    .split('\n')
    .flatMap((line) => (line.startsWith('data:') ? [parsedJson(line.slice('data:'.length))] : []))
    .filter(isJsonObject)
  return streamed(events)
}

function wholeAnswer(answer: JsonObject): readonly ConversationPiece[] {
  if (isJsonObject(answer['error']))
    return [{ kind: 'other', name: 'error', text: textOrJson(answer['error']) }]
  if (Array.isArray(answer['candidates'])) return geminiAnswer(answer)
  if (Array.isArray(answer['output'])) return objectsInList(answer['output']).flatMap(responsesItemPieces)
  if (Array.isArray(answer['choices'])) return objectsInList(answer['choices']).flatMap(choicePieces)
  return contentPieces(answer['content'])
}

function choicePieces(choice: JsonObject): readonly ConversationPiece[] {
  const message = isJsonObject(choice['message']) ? choice['message'] : {}
  const thinking = message['reasoning_content'] ?? message['reasoning']
  return [
    ...(typeof thinking === 'string' ? [{ kind: 'thinking', name: '', text: thinking } as const] : []),
    ...contentPieces(message['content'] ?? message['refusal'] ?? choice['text']),
    ...objectsInList(message['tool_calls']).map(chatToolCallPiece),
  ]
}

function geminiAnswer(answer: JsonObject): readonly ConversationPiece[] {
  return objectsInList(answer['candidates']).flatMap(({ content }) =>
    isJsonObject(content) ? geminiContentPieces(content) : [],
  )
}

/** A part of a streamed piece of a response. Parts with the same `at` are joined to one piece. */
interface Part extends ConversationPiece {
  readonly at: string
}

function streamed(events: readonly JsonObject[]): readonly ConversationPiece[] {
  const end = events.find(({ type }) => type === 'response.completed' || type === 'response.incomplete')
  if (end && isJsonObject(end['response'])) return wholeAnswer(end['response'])
  const parts = events.flatMap(partsOfEvent)
  const byPlace = Map.groupBy(parts, ({ at }) => at)
  return [...byPlace.values()].map((some) => ({
    kind: some[0]?.kind ?? 'text',
    name: some.map(({ name }) => name).join(''),
    text: some.map(({ text }) => text).join(''),
  }))
}

function partsOfEvent(event: JsonObject): readonly Part[] {
  if (isJsonObject(event['error']))
    return [{ at: 'error', kind: 'other', name: 'error', text: textOrJson(event['error']) }]
  if (Array.isArray(event['choices'])) return objectsInList(event['choices']).flatMap(chatParts)
  if (Array.isArray(event['candidates']))
    return geminiAnswer(event).map((piece, index) => ({ ...piece, at: placeOf(piece, index) }))
  const type = textOrJson(event['type'])
  if (type.startsWith('response.')) return responsesPart(type, event)
  return messagesPart(type, event)
}

const placeOf = ({ kind, name }: ConversationPiece, index: number): string =>
  kind === 'text' || kind === 'thinking' ? kind : `${kind} ${name} ${index}`

function chatParts({ index, delta, text }: JsonObject): readonly Part[] {
  const at = textOrJson(index)
  if (typeof text === 'string') return [{ at: `${at} text`, kind: 'text', name: '', text }]
  if (!isJsonObject(delta)) return []
  const grown = (kind: ConversationPiece['kind'], value: unknown): Part[] =>
    typeof value === 'string' && value !== '' ? [{ at: `${at} ${kind}`, kind, name: '', text: value }] : []
  const calls = objectsInList(delta['tool_calls']).map(
    (call): Part => ({ ...chatToolCallPiece(call), at: `${at} call ${textOrJson(call['index'])}` }),
  )
  return [
    ...grown('thinking', delta['reasoning_content'] ?? delta['reasoning']),
    ...grown('text', delta['content'] ?? delta['refusal']),
    ...calls,
  ]
}

function messagesPart(type: string, event: JsonObject): readonly Part[] {
  const at = `block ${textOrJson(event['index'])}`
  const block = event['content_block']
  if (type === 'content_block_start' && isJsonObject(block)) {
    const [piece] = contentPieces([block])
    const isCall = piece?.kind === 'call'
    return piece ? [{ ...piece, at, text: isCall && piece.text === '{}' ? '' : piece.text }] : []
  }
  const delta = event['delta']
  if (type !== 'content_block_delta' || !isJsonObject(delta)) return []
  const said = delta['text'] ?? delta['thinking'] ?? delta['partial_json']
  return typeof said === 'string' ? [{ at, kind: 'text', name: '', text: said }] : []
}

const DELTAS: Readonly<Record<string, ConversationPiece['kind']>> = {
  'response.output_text.delta': 'text',
  'response.refusal.delta': 'text',
  'response.reasoning_summary_text.delta': 'thinking',
  'response.reasoning_text.delta': 'thinking',
  'response.function_call_arguments.delta': 'call',
  'response.custom_tool_call_input.delta': 'call',
}

// The text of an event is only needed if the stream broke off: a complete stream ends with an event that has
// the whole response.
function responsesPart(type: string, event: JsonObject): readonly Part[] {
  const kind = DELTAS[type]
  const at = `item ${textOrJson(event['item_id'])} ${textOrJson(event['content_index'] ?? event['summary_index'])}`
  return kind ? [{ at, kind, name: '', text: textOrJson(event['delta']) }] : []
}

/** Joins consecutive pieces of text to one piece, and consecutive pieces of thinking. */
function merged(pieces: readonly ConversationPiece[]): readonly ConversationPiece[] {
  const joined: ConversationPiece[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    const grows = last?.kind === piece.kind && (piece.kind === 'text' || piece.kind === 'thinking')
    if (grows) joined[joined.length - 1] = { ...last, text: last.text + piece.text }
    else joined.push(piece)
  }
  return joined
}
