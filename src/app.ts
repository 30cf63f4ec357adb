import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { ApiKeys } from './access/api-key.ts'
import { bearerKey } from './access/bearer.ts'
import type { ClientAddress } from './access/client-address.ts'
import type { Endpoint, Visit } from './api/endpoint.ts'
import { renderError } from './api/envelopes.ts'
import { ROUTES } from './api/routes.ts'
import { GatewayError } from './errors.ts'
import type { Relay } from './relay/relay.ts'

/** How long a caller may go on sending a body that was refused. */
const UNREAD_BODY_MS = 5_000

/** What the application is made of. */
export interface AppParts {
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly relay: Relay
  /** Whether calls are taken. */
  readonly isReady: () => boolean
  readonly log: Logger
}

/** Finds the route, lets the caller in, and turns whatever is thrown into an answer. */
export function createApp(parts: AppParts): RequestListener {
  const routes = new Map<string, Endpoint[]>()
  for (const route of ROUTES) routes.set(route.path, [...(routes.get(route.path) ?? []), route])
  return (request, response) => {
    const visit: Visit = {
      id: randomUUIDv7(),
      startedMs: Date.now(),
      request,
      response,
      record: {},
    }
    response.once('close', () => logVisit(parts.log, visit))
    answer(parts, routes, visit).catch((error: unknown) => refuse(parts.log, visit, error))
  }
}

async function answer(parts: AppParts, routes: Map<string, Endpoint[]>, visit: Visit): Promise<void> {
  const endpoint = find(routes, visit.request)
  switch (endpoint.access) {
    case 'anyone':
      return endpoint.handle({ ...visit, isReady: parts.isReady() })
    case 'api-key': {
      if (!parts.isReady())
        throw new GatewayError('overloaded', 'the gateway is about to stop', { retryAfter: 5 })
      const key = bearerKey(visit.request.headers.authorization)
      const entering = parts.apiKeys.authenticate(key, parts.clientAddress()(visit.request))
      const caller = entering instanceof Promise ? await entering : entering
      visit.record.userId = caller.user.id
      visit.record.tokenId = caller.token.id
      return endpoint.handle({ ...visit, caller, relay: parts.relay })
    }
  }
}

function find(routes: Map<string, Endpoint[]>, request: IncomingMessage): Endpoint {
  const path = pathOf(request)
  const found = routes.get(path)
  if (!found) throw new GatewayError('not_found', `there is nothing at ${path.slice(0, 200)}`)
  const endpoint = found.find(({ method }) => method === request.method)
  if (endpoint) return endpoint
  const methods = found.map(({ method }) => method).join(', ')
  throw new GatewayError('method_not_allowed', `${path} takes ${methods}, not ${request.method}`)
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

function refuse(log: Logger, { id, request, response, record }: Visit, error: unknown): void {
  if (!(error instanceof Error) || error.name === 'Error' || error instanceof TypeError) {
    log.error({ id, error }, 'unforeseen error')
  }
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const { status, headers, body } = renderError('relay', error, id)
  if (error instanceof GatewayError) record.failure ??= error.code
  response.writeHead(status, headers)
  response.end(body)
  if (!request.complete) letFinish(request)
}

// A caller that is still sending would lose the answer if the connection closed now. What comes is thrown away, for a while.
function letFinish(request: IncomingMessage): void {
  const { socket } = request
  const patience = setTimeout(() => socket.destroy(), UNREAD_BODY_MS).unref()
  request.once('close', () => clearTimeout(patience))
  request.resume()
}

function logVisit(log: Logger, { id, startedMs, request, response, record }: Visit): void {
  log.info(
    {
      id,
      method: request.method,
      path: pathOf(request),
      status: statusOf(response),
      ms: Date.now() - startedMs,
      ...record,
    },
    'request',
  )
}

// 499, as other proxies write it, for a caller that did not wait.
function statusOf(response: ServerResponse): number {
  return response.headersSent ? response.statusCode : 499
}
