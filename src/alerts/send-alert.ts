import { Webhook } from 'standardwebhooks'
import { Agent, request } from 'undici'
import type { AlertTarget } from '../domain/alert.ts'
import { version } from '../domain/version.ts'
import type { DueAlert } from '../store/operations/alerts.ts'
import { lookupBlockingMetadata } from '../upstreams/lookup-blocking-metadata.ts'

/** Maximum number of attempts under way at one receiver. */
export const ATTEMPTS_AT_A_TIME = 16
/** Timeout of an attempt; Standard Webhooks advises 15 to 30 seconds. */
export const ATTEMPT_MS = 15_000
const CONNECT_MS = 5_000
/** Maximum number of response bytes that are read so that the connection can be reused. */
const MAX_RESPONSE_BYTES = 16_384

/**
 * HTTP agent for receivers of alerts, with at most `connections` connections to each. Addresses may be
 * private, because gateway.yaml names them. Addresses of metadata services are refused, whichever name
 * resolves to them.
 */
export function alertAgent(connections: number): Agent {
  return new Agent({
    allowH2: false,
    connections,
    maxHeaderSize: 16_384,
    headersTimeout: ATTEMPT_MS,
    bodyTimeout: ATTEMPT_MS,
    connect: { timeout: CONNECT_MS, lookup: lookupBlockingMetadata },
  })
}

/**
 * Makes one attempt to deliver an alert, signed as Standard Webhooks describes. Resolves to undefined if the
 * receiver has accepted it, otherwise to the reason. A redirect counts as a failure and is not followed,
 * because it could lead to any address.
 */
export async function sendAlert(
  { url, secret }: AlertTarget,
  alert: DueAlert,
  agent: Agent,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const body = bodyOf(alert)
    const sent = new Date()
    const response = await request(url, {
      method: 'POST',
      dispatcher: agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]),
      headers: {
        'content-type': 'application/json',
        'user-agent': `sluice/${version()}`,
        'webhook-id': alert.id,
        'webhook-timestamp': String(Math.floor(sent.getTime() / 1000)),
        'webhook-signature': new Webhook(secret).sign(alert.id, sent, body),
      },
      body,
    })
    response.body.on('error', () => {})
    await response.body.dump({ limit: MAX_RESPONSE_BYTES }).catch(() => {})
    const { statusCode } = response
    return statusCode >= 200 && statusCode < 300 ? undefined : `it responded ${statusCode}`
  } catch (error) {
    return reasonOf(error)
  }
}

function bodyOf({ type, createdMs, data }: DueAlert): string {
  const [written, at] = [JSON.stringify(type), JSON.stringify(new Date(createdMs).toISOString())]
  return `{"type":${written},"timestamp":${at},"data":${data}}`
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it cannot be reached'
  if (error.name === 'TimeoutError') return `it did not answer within ${ATTEMPT_MS / 1000} seconds`
  return `it cannot be reached (${'code' in error ? String(error.code) : error.name})`
}
