import { asText, isMembers, type Members, objectsIn, type Piece, type Turn } from './said.ts'

/** The turns of a request in the protocol chat, messages, responses or Gemini. */
export function requestTurns(request: Members): Turn[] {
  if (Array.isArray(request['contents'])) return geminiTurns(request)
  if (request['input'] !== undefined) return responsesTurns(request)
  if (Array.isArray(request['messages'])) return [...systemOf(request['system']), ...messageTurns(request)]
  return typeof request['prompt'] === 'string' ? [turn('user', [text(request['prompt'])])] : []
}

const text = (said: string): Piece => ({ kind: 'text', name: '', text: said })
const turn = (role: string, pieces: readonly Piece[]): Turn => ({ role, pieces })

function systemOf(system: unknown): Turn[] {
  const pieces = piecesOf(system)
  return pieces.length > 0 ? [turn('system', pieces)] : []
}

function messageTurns(request: Members): Turn[] {
  return objectsIn(request['messages']).map((message) => {
    const calls = objectsIn(message['tool_calls']).map(chatCall)
    const thinking = message['reasoning_content']
    const thoughts: Piece[] =
      typeof thinking === 'string' && thinking !== '' ? [{ kind: 'thinking', name: '', text: thinking }] : []
    const role = asText(message['role'])
    const said = piecesOf(message['content'])
    const pieces = role === 'tool' ? said.map((piece): Piece => ({ ...piece, kind: 'result' })) : said
    return turn(role, [...thoughts, ...pieces, ...calls])
  })
}

/** A tool call in the chat protocol. */
export function chatCall(call: Members): Piece {
  const called = isMembers(call['function'])
    ? call['function']
    : isMembers(call['custom'])
      ? call['custom']
      : call
  return { kind: 'call', name: asText(called['name']), text: asText(called['arguments'] ?? called['input']) }
}

function responsesTurns({ instructions, input }: Members): Turn[] {
  const system = systemOf(instructions)
  if (typeof input === 'string') return [...system, turn('user', [text(input)])]
  return [
    ...system,
    ...objectsIn(input).map((item) => turn(asText(item['role'] ?? roleOfItem(item)), itemPieces(item))),
  ]
}

function roleOfItem({ type }: Members): string {
  return asText(type).endsWith('_output') ? 'tool' : 'assistant'
}

/** The pieces of an item in the responses protocol. */
export function itemPieces(item: Members): readonly Piece[] {
  const type = asText(item['type'])
  if (type === 'reasoning')
    return [...objectsIn(item['summary']), ...objectsIn(item['content'])].map(
      (part): Piece => ({ kind: 'thinking', name: '', text: asText(part['text']) }),
    )
  if (type.endsWith('_output'))
    return [{ kind: 'result', name: asText(item['call_id']), text: asText(item['output']) }]
  if (type.endsWith('_call'))
    return [
      {
        kind: 'call',
        name: asText(item['name'] ?? type),
        text: asText(item['arguments'] ?? item['input'] ?? item['action']),
      },
    ]
  return piecesOf(item['content'])
}

function geminiTurns(request: Members): Turn[] {
  const instruction = request['systemInstruction'] ?? request['system_instruction']
  const system = isMembers(instruction) ? geminiPieces(instruction) : []
  return [
    ...(system.length > 0 ? [turn('system', system)] : []),
    ...objectsIn(request['contents']).map((content) =>
      turn(asText(content['role'] ?? 'user'), geminiPieces(content)),
    ),
  ]
}

/** The pieces of a content object in the Gemini protocol. */
export function geminiPieces({ parts }: Members): readonly Piece[] {
  return objectsIn(parts).map((part): Piece => {
    const call = part['functionCall'] ?? part['function_call']
    const result = part['functionResponse'] ?? part['function_response']
    const file = part['inlineData'] ?? part['inline_data'] ?? part['fileData'] ?? part['file_data']
    if (isMembers(call)) return { kind: 'call', name: asText(call['name']), text: asText(call['args']) }
    if (isMembers(result))
      return { kind: 'result', name: asText(result['name']), text: asText(result['response']) }
    if (isMembers(file))
      return {
        kind: 'file',
        name: asText(file['mimeType'] ?? file['mime_type']),
        text: asText(file['fileUri'] ?? file['file_uri'] ?? ''),
      }
    return { kind: part['thought'] === true ? 'thinking' : 'text', name: '', text: asText(part['text']) }
  })
}

/**
 * The pieces of a content that is a text or a list of blocks, in the protocols chat, messages and responses.
 */
export function piecesOf(content: unknown): readonly Piece[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  return objectsIn(content).map(blockPiece)
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

function blockPiece(block: Members): Piece {
  const type = asText(block['type'])
  if (type === 'tool_use' || type === 'server_tool_use')
    return { kind: 'call', name: asText(block['name']), text: asText(block['input']) }
  if (type.endsWith('tool_result'))
    return {
      kind: 'result',
      name: asText(block['tool_use_id']),
      text: piecesOf(block['content'])
        .map((one) => one.text)
        .join('\n'),
    }
  if (type === 'thinking') return { kind: 'thinking', name: '', text: asText(block['thinking']) }
  if (FILES.has(type)) return { kind: 'file', name: type, text: addressOf(block) }
  const said = block['text'] ?? block['refusal']
  return typeof said === 'string' ? text(said) : { kind: 'other', name: type, text: asText(block) }
}

/** The address of a file that the request refers to but does not contain. */
function addressOf(block: Members): string {
  const given = block['image_url'] ?? block['source'] ?? block['file_url']
  const url = isMembers(given) ? given['url'] : given
  return typeof url === 'string' && !url.startsWith('data:') ? url : ''
}
