import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The credentials that the proxies of these tests require. */
export const PROXY_USER = 'ann'
export const PROXY_PASSWORD = 'a:b@c'

/** A proxy that forwards requests. */
export interface ProxyServer {
  /** Host and port, without credentials: `127.0.0.1:PORT`. */
  readonly address: string
  /** The hosts and ports that tunnels were opened to. */
  readonly tunnels: string[]
  close(): Promise<void>
}

/** Reads a given number of bytes from a connection. */
type Read = (bytes: number) => Promise<Buffer>
type Serve = (
  read: Read,
  socket: Socket,
  tunnels: string[],
) => Promise<{ host: string; port: number } | undefined>

/** An HTTP proxy that sends its responses byte by byte. `routes` are the local ports that replace targets. */
export const startHttpProxy = (routes: ReadonlyMap<string, number> = new Map()): Promise<ProxyServer> =>
  startProxy(async (read, socket, tunnels) => {
    let head = ''
    while (!head.endsWith('\r\n\r\n')) head += (await read(1)).toString('latin1')
    const [, target = ''] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? []
    const given = /^proxy-authorization: basic (.*)$/im.exec(head)?.[1]?.trim() ?? ''
    if (Buffer.from(given, 'base64').toString() !== `${PROXY_USER}:${PROXY_PASSWORD}`) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
      return undefined
    }
    tunnels.push(target)
    for (const byte of Buffer.from('HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n'))
      await written(socket, Buffer.of(byte))
    const routed = routes.get(target)
    if (routed !== undefined) return { host: '127.0.0.1', port: routed }
    const at = target.lastIndexOf(':')
    return { host: target.slice(0, at), port: Number(target.slice(at + 1)) }
  })

/** A SOCKS5 proxy that requires a password and sends its responses byte by byte. */
export const startSocksProxy = (): Promise<ProxyServer> =>
  startProxy(async (read, socket, tunnels) => {
    const [, methods = 0] = await read(2)
    if (!(await read(methods)).includes(2)) {
      socket.end(Buffer.of(5, 0xff))
      return undefined
    }
    await written(socket, Buffer.of(5, 2))
    const [, userLength = 0] = await read(2)
    const user = (await read(userLength)).toString()
    const password = (await read((await read(1))[0] ?? 0)).toString()
    const isKnown = user === PROXY_USER && password === PROXY_PASSWORD
    await written(socket, Buffer.of(1, isKnown ? 0 : 1))
    if (!isKnown) {
      socket.end()
      return undefined
    }
    const type = (await read(4))[3]
    const host =
      type === 1 ? [...(await read(4))].join('.') : (await read((await read(1))[0] ?? 0)).toString()
    const port = (await read(2)).readUInt16BE()
    tunnels.push(`${host}:${port}`)
    for (const byte of Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0)) await written(socket, Buffer.of(byte))
    return { host, port }
  })

/** A server that is not a proxy: it answers every connection with `reply`, or never. */
export const startNoProxy = (reply: string | undefined): Promise<ProxyServer> =>
  startProxy(async (read, socket) => {
    await read(1)
    if (reply !== undefined) socket.end(reply)
    return undefined
  })

async function startProxy(serve: Serve): Promise<ProxyServer> {
  const tunnels: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const watch = (one: Socket): void => {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => sockets.delete(one))
    }
    watch(socket)
    const read: Read = async (bytes) => {
      for (;;) {
        const found: Buffer | null = bytes === 0 ? Buffer.alloc(0) : socket.read(bytes)
        if (found) return found
        await once(socket, 'readable')
      }
    }
    serve(read, socket, tunnels).then(
      (target) => {
        if (!target) return
        const upstream = connect(target)
        watch(upstream)
        socket.pipe(upstream).pipe(socket)
        upstream.on('close', () => socket.destroy())
      },
      () => socket.destroy(),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    async close() {
      for (const socket of sockets) socket.destroy()
      await once(server.close(), 'close')
    },
  }
}

function written(socket: Socket, bytes: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.write(bytes, () => setImmediate(resolve))
  return promise
}
