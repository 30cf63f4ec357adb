import type { ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { AccountAccess } from '../access/account.ts'
import type { ClientAddress } from '../access/client-address.ts'
import type { Role, User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import { type Limited, type Limits, requireAllowed } from '../limits/limits.ts'
import type { ManagementParts } from '../management/parts.ts'
import { readInput } from '../management/read-input.ts'
import type { Bodies } from '../relay/body.ts'
import type { JsonEndpoint, Visit } from './endpoint.ts'
import { renderAnswer } from './envelopes.ts'
import type { PathParams } from './path-pattern.ts'

/** Bytes of a request body; what is managed is small. */
const BODY_LIMIT = 1024 * 1024

const NEVER_CACHED = {
  'cache-control': 'no-store, no-cache, must-revalidate, private, max-age=0',
  pragma: 'no-cache',
  expires: '0',
}

/** Paths that the global limit is for. */
const GLOBALLY_LIMITED = /^\/api\/|\/dashboard\//

/** What JSON endpoints are answered with. */
export interface JsonParts {
  readonly accounts: AccountAccess
  readonly clientAddress: () => ClientAddress
  readonly limits: Limits
  readonly bodies: Bodies
  readonly management: ManagementParts
}

type Handle = (asked: object) => Promise<unknown>

/** Answers JSON endpoints: limits, access, input by schema, and the envelope, the same for all of them. */
export class JsonDoor {
  readonly #parts: JsonParts

  constructor(parts: JsonParts) {
    this.#parts = parts
  }

  /** Rejects with what the caller is to be told. */
  async answer(visit: Visit, endpoint: JsonEndpoint, params: PathParams): Promise<void> {
    const { request, response } = visit
    const { management, clientAddress } = this.#parts
    const { rateLimits } = management.settings()
    if (GLOBALLY_LIMITED.test(endpoint.path)) {
      const address = clientAddress()(request)
      this.#limit(response, { name: 'global', whom: address, limit: rateLimits.global }, 'this address')
    }
    const who = await this.#enter(visit, endpoint)
    if (endpoint.limit && who.user) {
      const { limit: name } = endpoint
      this.#limit(response, { name, whom: who.user.id, limit: rateLimits[name] }, 'this user')
    }
    const data = await (endpoint.handle as Handle)({
      ...who,
      params: endpoint.params && readInput(endpoint.params, params),
      query: endpoint.query && readInput(endpoint.query, queryOf(request.url ?? '')),
      body: endpoint.body && (await this.#body(visit, endpoint.body)),
      visit,
      parts: management,
    })
    const body = renderAnswer(endpoint.area, data)
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'x-request-id': visit.id,
      ...(endpoint.cache === 'never' ? NEVER_CACHED : { 'cache-control': 'no-store' }),
    })
    response.end(body)
  }

  // Told in the words of the RateLimit header fields that most clients know.
  #limit(response: ServerResponse, limited: Limited, whose: string): void {
    const verdict = this.#parts.limits.take(limited)
    if (!verdict) return
    response.setHeader('ratelimit-limit', String(limited.limit.requests))
    response.setHeader('ratelimit-remaining', String(verdict.remaining))
    response.setHeader('ratelimit-reset', String(Math.ceil(verdict.resetMs / 1000)))
    requireAllowed(verdict, whose)
  }

  async #enter({ request, record }: Visit, { access, tokenForm }: JsonEndpoint): Promise<{ user?: User }> {
    if (access === 'visitor') return {}
    const user = await this.#parts.accounts.authenticate(request, tokenForm ?? 'either', LEAST_ROLE[access])
    record.userId = user.id
    return { user }
  }

  async #body(visit: Visit, schema: z.ZodType): Promise<unknown> {
    const body = await this.#parts.bodies.read(visit, BODY_LIMIT)
    try {
      return readInput(schema, parsed(body.bytes))
    } finally {
      body.release()
    }
  }
}

const LEAST_ROLE = { account: 1, admin: 10, root: 100 } as const satisfies Record<string, Role>

/** Of a parameter that is there twice, the first counts. */
function queryOf(url: string): Record<string, string> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  return Object.fromEntries([...new URLSearchParams(url.slice(start))].toReversed())
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new GatewayError('invalid_json', `the request body is not JSON: ${reason}`)
  }
}
