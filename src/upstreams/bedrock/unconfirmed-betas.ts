import type { ScannedObject } from '../../protocols/json/scanned-object.ts'

/**
 * Beta features that no page of AWS confirms for Bedrock, and whether a request uses them. Agents name them in
 * every request; if Bedrock refused one, each call would be a 400. So they go along only where they are used, and
 * the request would be refused without them anyway. Anthropic says of `thinking-display-updates` that it is on all
 * platforms, of `mid-conversation-tool-changes` that it is on Bedrock, and names Bedrock for neither of the others;
 * makers of clients send all four.
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

/** Whether a beta feature that the client names goes along: always, but for an unconfirmed one without its use. */
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
