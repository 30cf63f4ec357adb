import { appendFileSync } from 'node:fs'
import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { isIP } from 'node:net'
import process from 'node:process'
import { callbackify } from 'node:util'
import { threadId } from 'node:worker_threads'

// Loaded into the real program by `node --import`. It replaces the name server and the public internet, which
// a test cannot change, and records every connection. See test/equipment/network.ts.

const { TEST_DNS = '', TEST_PUBLIC = '', TEST_PUBLIC_PORT = '', TEST_CONNECTIONS = '' } = process.env

const resolver = new dns.promises.Resolver({ timeout: 2_000, tries: 2 })
resolver.setServers([TEST_DNS])

type Callback = (error: Error | null, address?: string | LookupAddress[], family?: number) => void

async function addressesOf(name: string): Promise<LookupAddress[]> {
  if (isIP(name) > 0) return [{ address: name, family: isIP(name) }]
  const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return found.flatMap((answer, index) =>
    answer.status === 'fulfilled'
      ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 }))
      : [],
  )
}

function lookup(name: string, options: { all?: boolean }, callback: Callback): void {
  callbackify(addressesOf)(name, (_, addresses) => {
    const [first] = addresses
    if (!first) callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }))
    else if (options.all === true) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

dns.lookup = lookup as unknown as typeof dns.lookup
syncBuiltinESMExports()

interface Handle {
  connect(request: object, address: string, port: number): number
  connect6(request: object, address: string, port: number): number
}

/** Node's sockets, on which everything that opens connections is based. */
const { TCP } = (process as unknown as { binding(name: string): { TCP: { prototype: Handle } } }).binding(
  'tcp_wrap',
)
for (const method of ['connect', 'connect6'] as const) {
  const connect = TCP.prototype[method]
  TCP.prototype[method] = function (this: Handle, request, address, port) {
    appendFileSync(TEST_CONNECTIONS, `${address} ${port}\n`)
    if (!TEST_PUBLIC.split(' ').includes(address)) return connect.call(this, request, address, port)
    return connect.call(this, request, '127.0.0.1', Number(TEST_PUBLIC_PORT))
  }
}
if (threadId === 0) appendFileSync(TEST_CONNECTIONS, 'watched\n')
