import type { UsageFilter } from '../../domain/usage-filter.ts'
import { GatewayError } from '../../errors.ts'
import type { AdministrationParts } from '../../management/parts.ts'
import { filterOf, ownUsageQuery, usageQuery } from '../../management/usage/usage-query.ts'
import { type ClientExchange, defineEndpoint } from '../endpoint.ts'

const EVENTS = { type: 'text/event-stream', isEndless: true } as const
/**
 * Interval at which the client's authorization is checked again, and the number of checks between two
 * comments.
 */
const CHECK_MS = 5_000
const CHECKS_PER_COMMENT = 3

/** All users' calls as they are settled. `docs/api.md: Live calls`. */
export const usageStream = defineEndpoint({
  method: 'GET',
  path: '/api/log/stream',
  area: 'management',
  access: 'admin',
  summary: "All users' calls as this node settles them, as server-sent events",
  errorStatuses: [400],
  query: usageQuery,
  text: EVENTS,
  handle: ({ query, ...input }) => Promise.resolve(live(input, filterOf(query), 'all')),
})

/** The account's own calls as they are settled. */
export const ownUsageStream = defineEndpoint({
  method: 'GET',
  path: '/api/log/self/stream',
  area: 'management',
  access: 'account',
  summary: "The account's own calls as this node settles them, as server-sent events",
  errorStatuses: [400],
  query: ownUsageQuery,
  text: EVENTS,
  handle: ({ query, ...input }) => Promise.resolve(live(input, filterOf(query, input.user.id), 'own')),
})

interface LiveInput {
  readonly user: { readonly id: number }
  readonly exchange: ClientExchange
  readonly parts: AdministrationParts
  readonly reauthenticate: () => Promise<void>
}

function live(
  { user, exchange: { request, response }, parts, reauthenticate }: LiveInput,
  filter: UsageFilter | null,
  scope: 'all' | 'own',
): AsyncIterable<string> {
  const lastId = request.headers['last-event-id']
  const reader = parts.liveCalls.open({
    userId: user.id,
    scope,
    filter,
    lastId: typeof lastId === 'string' && lastId !== '' ? lastId : undefined,
  })
  let checks = 0
  const checking = setInterval(() => {
    if (!reader.isOpen) return clearInterval(checking)
    checks += 1
    if (checks % CHECKS_PER_COMMENT === 0) reader.comment()
    reauthenticate().catch((error: unknown) => {
      // While the database is unavailable, the client stays connected.
      if (error instanceof GatewayError && error.kind.status < 500) reader.end(error.code)
    })
  }, CHECK_MS).unref()
  response.onClosed(() => {
    clearInterval(checking)
    reader.leave()
  })
  // A client that closes its side counts as gone: an idle stream would not notice it by failing to send.
  response.needsUpstream()
  // The response may have been aborted before the listener was added.
  if (response.isAborted) reader.leave()
  return reader.text()
}
