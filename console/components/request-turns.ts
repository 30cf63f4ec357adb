import {
  textOrJson,
  isJsonObject,
  type JsonObject,
  objectsInList,
  type ConversationPiece,
  type ConversationTurn,
} from './conversation-pieces.ts'

/** The turns of a request in the protocol chat, messages, responses or Gemini. */
export function requestTurns(request: JsonObject): ConversationTurn[] {
  if (Array.isArray(request['contents'])) return geminiTurns(request)
  if (request['input'] !== undefined) return responsesTurns(request)
  if (Array.isArray(request['messages'])) return [...systemOf(request['system']), ...messageTurns(request)]
  return typeof request['prompt'] === 'string' ? [turn('user', [text(request['prompt'])])] : []
}

const text = (said: string): ConversationPiece => ({ kind: 'text', name: '', text: said })
const turn = (role: string, pieces: readonly ConversationPiece[]): ConversationTurn => ({ role, pieces })

function systemOf(system: unknown): ConversationTurn[] {
  const pieces = contentPieces(system)
  return pieces.length > 0 ? [turn('system', pieces)] : []
}

function messageTurns(request: JsonObject): ConversationTurn[] {
  return objectsInList(request['messages']).map((message) => {
    const calls = objectsInList(message['tool_calls']).map(chatToolCallPiece)
    const thinking = message['reasoning_content']
    const thoughts: ConversationPiece[] =
      typeof thinking === 'string' && thinking !== '' ? [{ kind: 'thinking', name: '', text: thinking }] : []
    const role = textOrJson(message['role'])
    const said = contentPieces(message['content'])
    const pieces =
      role === 'tool' ? said.map((piece): ConversationPiece => ({ ...piece, kind: 'result' })) : said
    return turn(role, [...thoughts, ...pieces, ...calls])
  })
}

/** A tool call in the chat protocol. */
export function chatToolCallPiece(call: JsonObject): ConversationPiece {
  const called = isJsonObject(call['function'])
    ? call['function']
    : isJsonObject(call['custom'])
      ? call['custom']
      : call
  return {
    kind: 'call',
    name: textOrJson(called['name']),
    text: textOrJson(called['arguments'] ?? called['input']),
  }
}

function responsesTurns({ instructions, input }: JsonObject): ConversationTurn[] {
  const system = systemOf(instructions)
  if (typeof input === 'string') return [...system, turn('user', [text(input)])]
  return [
    ...system,
    ...objectsInList(input).map((item) =>
      turn(textOrJson(item['role'] ?? roleOfItem(item)), responsesItemPieces(item)),
    ),
  ]
}

function roleOfItem({ type }: JsonObject): string {
  return textOrJson(type).endsWith('_output') ? 'tool' : 'assistant'
}

/** The pieces of an item in the responses protocol. */
export function responsesItemPieces(item: JsonObject): readonly ConversationPiece[] {
  const type = textOrJson(item['type'])
  if (type === 'reasoning')
    return [...objectsInList(item['summary']), ...objectsInList(item['content'])].map(
      (part): ConversationPiece => ({ kind: 'thinking', name: '', text: textOrJson(part['text']) }),
    )
  if (type.endsWith('_output'))
    return [{ kind: 'result', name: textOrJson(item['call_id']), text: textOrJson(item['output']) }]
  if (type.endsWith('_call'))
    return [
      {
        kind: 'call',
        name: textOrJson(item['name'] ?? type),
        text: textOrJson(item['arguments'] ?? item['input'] ?? item['action']),
      },
    ]
  return contentPieces(item['content'])
}

function geminiTurns(request: JsonObject): ConversationTurn[] {
  const instruction = request['systemInstruction'] ?? request['system_instruction']
  const system = isJsonObject(instruction) ? geminiContentPieces(instruction) : []
  return [
    ...(system.length > 0 ? [turn('system', system)] : []),
    ...objectsInList(request['contents']).map((content) =>
      turn(textOrJson(content['role'] ?? 'user'), geminiContentPieces(content)),
    ),
  ]
}

/** The pieces of a content object in the Gemini protocol. */
export function geminiContentPieces({ parts }: JsonObject): readonly ConversationPiece[] {
  return objectsInList(parts).map((part): ConversationPiece => {
    const call = part['functionCall'] ?? part['function_call']
    const result = part['functionResponse'] ?? part['function_response']
    const file = part['inlineData'] ?? part['inline_data'] ?? part['fileData'] ?? part['file_data']
    if (isJsonObject(call))
      return { kind: 'call', name: textOrJson(call['name']), text: textOrJson(call['args']) }
    if (isJsonObject(result))
      return { kind: 'result', name: textOrJson(result['name']), text: textOrJson(result['response']) }
    if (isJsonObject(file))
      return {
        kind: 'file',
        name: textOrJson(file['mimeType'] ?? file['mime_type']),
        text: textOrJson(file['fileUri'] ?? file['file_uri'] ?? ''),
      }
    return { kind: part['thought'] === true ? 'thinking' : 'text', name: '', text: textOrJson(part['text']) }
  })
}

/**
 * The pieces of a content that is a text or a list of blocks, in the protocols chat, messages and responses.
 */
export function contentPieces(content: unknown): readonly ConversationPiece[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  return objectsInList(content).map(blockPiece)
}

const FILES: ReadonlySet<string> = new Set([
  'image',
  'image_url',
  'input_image',
  'document',
  'file',
  'input_file',
  'input_audio',
  'audio',
])

function blockPiece(block: JsonObject): ConversationPiece {
  const type = textOrJson(block['type'])
  if (type === 'tool_use' || type === 'server_tool_use')
    return { kind: 'call', name: textOrJson(block['name']), text: textOrJson(block['input']) }
  if (type.endsWith('tool_result'))
    return {
      kind: 'result',
      name: textOrJson(block['tool_use_id']),
      text: contentPieces(block['content'])
        .map((one) => one.text)
        .join('\n'),
    }
  if (type === 'thinking') return { kind: 'thinking', name: '', text: textOrJson(block['thinking']) }
  if (FILES.has(type)) return { kind: 'file', name: type, text: addressOf(block) }
  const said = block['text'] ?? block['refusal']
  return typeof said === 'string' ? text(said) : { kind: 'other', name: type, text: textOrJson(block) }
}

/** The address of a file that the request refers to but does not contain. */
function addressOf(block: JsonObject): string {
  const given = block['image_url'] ?? block['source'] ?? block['file_url']
  const url = isJsonObject(given) ? given['url'] : given
  return typeof url === 'string' && !url.startsWith('data:') ? url : ''
}
