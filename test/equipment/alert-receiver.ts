import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** An alert as a receiver received it. */
export interface ReceivedAlert {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly data: unknown
  /** The body as text. */
  readonly text: string
  readonly headers: IncomingHttpHeaders
  /** Whether the signature is valid for the body and the timestamp of the request. */
  readonly isSigned: boolean
  readonly at: number
}

/** The response of a receiver: a status, a redirect to a URL, or none. */
type Answer = number | { readonly location: string } | 'silence'

/** A real server that receives alerts, and verifies their signatures with the library. */
export interface AlertReceiver {
  readonly url: string
  /** An entry of `alerts` in gateway.yaml. */
  declared(...events: string[]): Record<string, unknown>
  /** Sets the response to each alert from now on; the default is 204. */
  answer(decision: (alert: ReceivedAlert) => Answer | Promise<Answer>): void
  readonly received: readonly ReceivedAlert[]
  /** The number of alerts that are not answered yet. */
  readonly open: number
  /** The maximum number of alerts that were unanswered at the same time. */
  readonly mostOpen: number
  /** Settles once this number of alerts was received. */
  atLeast(count: number): Promise<void>
  stop(): Promise<void>
}

/** Starts a receiver on a free port of this machine. */
export async function startAlertReceiver(): Promise<AlertReceiver> {
  const secret = `whsec_${Buffer.alloc(32, 'key').toString('base64')}`
  const webhook = new Webhook(secret)
  const received: ReceivedAlert[] = []
  const waiting = new Set<() => void>()
  let decide: (alert: ReceivedAlert) => Answer | Promise<Answer> = () => 204
  let open = 0
  let mostOpen = 0
  const respond = async (alert: ReceivedAlert, reply: ServerResponse): Promise<void> => {
    const answer = await decide(alert)
    if (answer === 'silence') return
    if (typeof answer === 'number') reply.writeHead(answer).end()
    else reply.writeHead(307, { location: answer.location }).end()
  }
  const server = createServer((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    reply.on('close', () => (open -= 1))
    open += 1
    mostOpen = Math.max(mostOpen, open)
    request.on('end', () => {
      const alert = alertOf(Buffer.concat(chunks).toString(), request.headers, webhook)
      received.push(alert)
      for (const look of waiting) look()
      void respond(alert, reply)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`
  return {
    url,
    declared: (...events) => ({ url, secret, events }),
    answer: (decision) => void (decide = decision),
    received,
    get open() {
      return open
    },
    get mostOpen() {
      return mostOpen
    },
    atLeast: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (received.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function alertOf(text: string, headers: IncomingHttpHeaders, webhook: Webhook): ReceivedAlert {
  const id = String(headers['webhook-id'])
  // The library refuses old timestamps, and some tests move the clock of the sender.
  const sent = new Date(Number(headers['webhook-timestamp']) * 1000)
  const isSigned = headers['webhook-signature'] === webhook.sign(id, sent, text)
  const { type, timestamp, data } = JSON.parse(text) as Pick<ReceivedAlert, 'type' | 'timestamp' | 'data'>
  return { id, type, timestamp, data, text, headers, isSigned, at: performance.now() }
}
