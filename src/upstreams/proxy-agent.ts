import type { LookupFunction, Socket } from 'node:net'
import { originOf } from '@sluice/http1'
import { Agent, type buildConnector } from 'undici'
import { dial } from './dial.ts'
import { parseProxy } from './parse-proxy.ts'

/** An HTTP agent whose connections go through a proxy. Disposing of it closes all of them. */
interface ProxiedAgent extends Agent, AsyncDisposable {}

/**
 * Creates an HTTP agent whose connections go through the proxy with this URL. `lookup` resolves the host name
 * of the proxy, and with `isHostChecked` also that of the address.
 */
export function proxiedAgent(
  proxyUrl: string,
  lookup: LookupFunction | undefined,
  timeoutMs: number,
  isHostChecked: boolean,
): ProxiedAgent {
  const proxy = parseProxy(proxyUrl)
  if (!proxy) throw new Error('the proxy of the channel cannot be read')
  const agent = new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect({ protocol, host }, callback) {
      const origin = { ...originOf(new URL(`${protocol}//${host}`), lookup, proxy), isHostChecked }
      void report(dial(origin, timeoutMs), callback)
    },
  })
  return Object.assign(agent, { [Symbol.asyncDispose]: () => agent.destroy() })
}

async function report(opening: Promise<Socket>, callback: buildConnector.Callback): Promise<void> {
  let socket: Socket
  try {
    socket = await opening
  } catch (error) {
    callback(error as Error, null)
    return
  }
  callback(null, socket)
}
