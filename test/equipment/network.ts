import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DnsServer, startDns, type Zone } from './dns-server.ts'

/** An address of the public internet, which leads to a server of the test instead. */
export const PUBLIC_ADDRESS = '93.184.215.14'

/** Destination of a connection. */
export interface Connection {
  readonly address: string
  readonly port: number
}

/** A simulated network around the program under test. */
export interface Network {
  readonly dns: DnsServer
  /** The environment variables that put a program into the network. */
  readonly env: Readonly<Record<string, string>>
  /** Every connection attempt so far with its destination, in order; throws if the recorder did not run. */
  connections(): Connection[]
  stop(): Promise<void>
}

/**
 * A name server for one process that replaces the machine's. Each of `addresses` leads to `publicPort` of
 * 127.0.0.1, whatever the port.
 */
export async function startNetwork(
  zone: Zone,
  publicPort: number,
  addresses: readonly string[] = [PUBLIC_ADDRESS],
): Promise<Network> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-network-'))
  const file = join(folder, 'connections')
  const dns = await startDns(zone)
  return {
    dns,
    env: {
      NODE_OPTIONS: `--import=${new URL('network-preload.ts', import.meta.url).href}`,
      TEST_DNS: `127.0.0.1:${dns.port}`,
      TEST_PUBLIC: addresses.join(' '),
      TEST_PUBLIC_PORT: String(publicPort),
      TEST_CONNECTIONS: file,
    },
    connections() {
      const [watched, ...lines] = readFileSync(file, 'utf8').trim().split('\n')
      if (watched !== 'watched') throw new Error('nobody watches the connections')
      return lines
        .filter((line) => line !== 'watched')
        .map((line) => {
          const [address = '', port] = line.split(' ')
          return { address, port: Number(port) }
        })
    },
    async stop() {
      await dns.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
