import type { ScannedObject } from '../../protocols/json/scanned-object.ts'

/**
 * Beta features that no page of AWS confirms for Bedrock, and whether a request uses them. Agents name them
 * in every request, and each call would be a 400 if Bedrock refused one. So they go along only where they are
 * used: without them, such a request would be refused anyway. Copies of Anthropic's pages have
 * `thinking-display-updates` on all platforms and `mid-conversation-tool-changes` on Bedrock; for the others
 * none names it. Makers of clients send all four.
 */
const UNCONFIRMED: ReadonlyMap<string, (request: ScannedObject, body: Buffer) => boolean> = new Map([
  ['dangerous-tool-use-2026-09-03', (request) => request.has('safeguards')],
  ['mid-conversation-output-config-2026-07-01', (request, body) => says(request, body, '"output_config"')],
  [
    'mid-conversation-tool-changes-2026-07-01',
    (request, body) => says(request, body, '"tool_addition"') || says(request, body, '"tool_removal"'),
  ],
  ['thinking-display-updates-2026-08-18', (request) => showsUpdates(request.value('thinking'))],
])

/** Whether a beta feature that the client names goes along: an unconfirmed one does where it is used. */
export function goesAlong(beta: string, request: ScannedObject, body: Buffer): boolean {
  return UNCONFIRMED.get(beta)?.(request, body) ?? true
}

// A text that only quotes the name lets the feature go along too, as the client asked for it.
function says(request: ScannedObject, body: Buffer, name: string): boolean {
  const messages = request.span('messages')
  if (!messages) return false
  return body.subarray(messages.start, messages.end).includes(name)
}

function showsUpdates(thinking: unknown): boolean {
  return typeof thinking === 'object' && thinking !== null && Reflect.get(thinking, 'display') === 'updates'
}
