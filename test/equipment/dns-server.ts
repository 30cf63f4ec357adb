import { createSocket } from 'node:dgram'
import ipaddr from 'ipaddr.js'

/**
 * The addresses of a name, IPv4 and IPv6 together, at its `nth` query (from 0); an empty list means that the
 * name does not exist.
 */
export type Zone = (name: string, nth: number) => readonly string[]

/** A name server on 127.0.0.1 whose answers have a TTL of 0. */
export interface DnsServer {
  readonly port: number
  /** The queried names in order; each look-up sends two queries, for IPv4 and for IPv6. */
  asked(): readonly string[]
  stop(): Promise<void>
}

const TYPES = new Map([
  [1, 'ipv4'],
  [28, 'ipv6'],
])
const HEADER_BYTES = 12
/** DNS header flags: a response; authoritative; recursion available. */
const ANSWERED = 0x84_80
const NO_SUCH_NAME = 3

/** Starts the name server on a free port, or on the given one. */
export async function startDns(zone: Zone, port = 0): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const names: string[] = []
  const counts = new Map<string, number>()
  socket.on('message', (question, { address, port: from }) => {
    const { name, type, end } = readQuestion(question)
    names.push(name)
    // IPv4 and IPv6 of one look-up are separate queries: both get the addresses for the same `nth`.
    const count = counts.get(`${name} ${type}`) ?? 0
    counts.set(`${name} ${type}`, count + 1)
    const addresses = zone(name, count)
    const fitting = addresses.filter((each) => ipaddr.parse(each).kind() === TYPES.get(type))
    const status = addresses.length === 0 ? NO_SUCH_NAME : 0
    socket.send(answer(question.subarray(0, end), type, fitting, status), from, address)
  })
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  return {
    port: socket.address().port,
    asked: () => [...names],
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}

function answer(question: Buffer, type: number, addresses: readonly string[], status: number): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(ANSWERED | status, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt32BE(0, 8)
  const records = addresses.map((address) => {
    const bytes = Buffer.from(ipaddr.parse(address).toByteArray())
    const record = Buffer.alloc(HEADER_BYTES)
    // A pointer to the name in the question; class IN; TTL 0.
    record.writeUInt16BE(0xc0_00 | HEADER_BYTES, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt16BE(bytes.length, 10)
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([head, ...records])
}
