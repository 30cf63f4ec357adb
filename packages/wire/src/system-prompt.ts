import type { ProtocolName } from './protocols.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/**
 * The member of a request that contains the instructions for the model, and the new value of the member as
 * JSON text.
 */
export type PromptMember = readonly [member: string, text: string]

/**
 * Adds instructions of the gateway before the instructions of a request. Everything that the client sent
 * stays unchanged. Returns undefined if the protocol, or this request, cannot contain instructions.
 */
export function withSystemPrompt(
  scan: ScannedObject,
  protocol: ProtocolName,
  prompt: string,
): PromptMember | undefined {
  return PLACES[protocol](scan, prompt)
}

const PLACES: Readonly<
  Record<ProtocolName, (scan: ScannedObject, prompt: string) => PromptMember | undefined>
> = {
  chat: inMessages,
  messages: (scan, prompt) => ['system', inFront(scan, scan.span('system')?.node, prompt)],
  responses: (scan, prompt) => ['instructions', inFront(scan, scan.span('instructions')?.node, prompt)],
  gemini: withInstruction,
  converse: (scan, prompt) => ['system', inSystemBlocks(scan, prompt)],
  rerank: () => undefined,
}

// The text is added to an existing system message, because some upstreams refuse a second one.
function inMessages(scan: ScannedObject, prompt: string): PromptMember | undefined {
  const messages = scan.span('messages')
  if (!messages || scan.kind('messages') !== 'array') return undefined
  const array = scan.textOf(messages.node)
  const [first] = scan.elements(messages.node)
  const content = first === undefined ? undefined : instructionsOf(scan, first)
  if (content === undefined) {
    const message = JSON.stringify({ role: 'system', content: prompt })
    return ['messages', `[${message}${first === undefined ? '' : ','}${array.slice(1)}`]
  }
  const { bytes } = scan
  const before = bytes.toString('utf8', messages.start, scan.startOf(content))
  const behind = bytes.toString('utf8', scan.endOf(content), messages.end)
  return ['messages', before + inFront(scan, content, prompt) + behind]
}

function inSystemBlocks(scan: ScannedObject, prompt: string): string {
  const system = scan.span('system')
  const block = JSON.stringify({ text: prompt })
  if (!system || scan.kind('system') !== 'array') return `[${block}]`
  const separator = scan.elements(system.node).length === 0 ? '' : ','
  return `[${block}${separator}${scan.textOf(system.node).slice(1)}`
}

/** Like `withSystemPrompt`, for a Gemini request. */
export function withInstruction(scan: ScannedObject, prompt: string): PromptMember {
  // Google's servers accept the name in camel case and in snake case.
  const name = scan.has('system_instruction') ? 'system_instruction' : 'systemInstruction'
  const given = scan.span(name)
  const parts = given && scan.kind(name) === 'object' ? scan.memberOf(given.node, 'parts') : undefined
  const part = JSON.stringify({ text: prompt })
  if (!given || parts === undefined || scan.kindOf(parts) !== 'array') return [name, `{"parts":[${part}]}`]
  const before = scan.bytes.toString('utf8', given.start, scan.startOf(parts))
  const behind = scan.bytes.toString('utf8', scan.endOf(parts), given.end)
  const separator = scan.elements(parts).length === 0 ? '' : ','
  return [name, `${before}[${part}${separator}${scan.textOf(parts).slice(1)}${behind}`]
}

/** Returns the content of a system message; undefined for any other message. */
function instructionsOf(scan: ScannedObject, message: Node): Node | undefined {
  if (scan.kindOf(message) !== 'object') return undefined
  const role = scan.memberOf(message, 'role')
  const name = role === undefined ? undefined : scan.parse(role)
  if (name !== 'system' && name !== 'developer') return undefined
  const content = scan.memberOf(message, 'content')
  const kind = content === undefined ? undefined : scan.kindOf(content)
  return kind === 'string' || kind === 'array' ? content : undefined
}

/**
 * Returns the text or list of parts at `node` with the prompt added before it; the prompt alone if `node` is
 * neither.
 */
function inFront(scan: ScannedObject, node: Node | undefined, prompt: string): string {
  const kind = node === undefined ? undefined : scan.kindOf(node)
  if (node !== undefined && kind === 'string')
    return JSON.stringify(`${prompt}\n\n`).slice(0, -1) + scan.textOf(node).slice(1)
  if (node !== undefined && kind === 'array') {
    const part = JSON.stringify({ type: 'text', text: prompt })
    const separator = scan.elements(node).length === 0 ? '' : ','
    return `[${part}${separator}${scan.textOf(node).slice(1)}`
  }
  return JSON.stringify(prompt)
}
