import { onTestFinished } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../fixtures/fault-proxy.ts'

/**
 * A PostgreSQL database behind a fault proxy. Its server may listen on an address or on a socket in a folder.
 */
export async function behindProxy(
  place: string,
): Promise<{ readonly proxy: FaultProxy; readonly url: string }> {
  const url = new URL(place)
  const host = decodeURIComponent(url.hostname)
  const port = Number(url.port || 5432)
  const proxy = await startFaultProxy(
    host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port },
  )
  onTestFinished(() => proxy.stop())
  url.hostname = '127.0.0.1'
  url.port = `${proxy.port}`
  return { proxy, url: url.href }
}
