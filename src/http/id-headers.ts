/**
 * Headers with the id of a request: `x-request-id` everywhere, and `request-id` too on messages paths,
 * because clients of that protocol read it. `docs/api.md: Envelopes`.
 */
export function idHeaders(id: string, isMessages: boolean): Record<string, string> {
  return isMessages ? { 'x-request-id': id, 'request-id': id } : { 'x-request-id': id }
}
