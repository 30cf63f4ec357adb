import { lookup, type LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { embeddedIpv4Addresses, hostOf, isMetadataAddress } from '../domain/metadata-address.ts'

/**
 * Thrown if a connection would go to an address that clients must not reach. The message may be shown to the
 * client.
 */
export class ForbiddenAddress extends Error {
  constructor(reason = 'its address is not public') {
    super(reason)
    this.name = 'ForbiddenAddress'
  }
}

/**
 * The range of IPv6 addresses on the public internet. Other ranges may contain IPv4 addresses
 * (`::127.0.0.1`).
 */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/**
 * Ports on which public web servers listen. Services on other ports may not be meant for the public. The
 * empty text means the default port.
 */
const ALLOWED_PORTS: ReadonlySet<string> = new Set(['', '80', '443'])

/** Whether an address is on the public internet. Addresses in unknown ranges count as private. */
export function isPublicAddress(address: string): boolean {
  // A separate check is needed, because the address of Azure's metadata service is in a public range.
  if (!ipaddr.isValid(address) || isMetadataAddress(address)) return false
  if (!embeddedIpv4Addresses(address).every(isPublicAddress)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(GLOBAL_IPV6)
}

/** Who chooses the URLs of a guarded agent. */
export type UrlsOf = 'clients' | 'operator'

/**
 * Creates an HTTP agent for URLs whose addresses must be checked. A host name is resolved once, all its addresses are
 * checked, and the connection uses a checked one; IP addresses in the URL and the port are checked too.
 * Because the check happens when connecting, neither redirects nor DNS rebinding can bypass it.
 */
export function createGuardedAgent(allowPrivateNetworks: boolean, timeoutMs: number, urlsOf: UrlsOf): Agent {
  // The operator's names are few, and may be in the machine's hosts file.
  const system = urlsOf === 'operator' ? systemAddresses : inTurn(timeoutMs, systemAddresses)
  const find = urlsOf === 'operator' ? systemAddresses : addressesOfNameServers()
  const connect = buildConnector({
    timeout: timeoutMs,
    lookup: lookupOf(allowPrivateNetworks ? system : publicOnly(find)),
  })
  return new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect(options, callback) {
      const host = hostOf(options)
      // IP addresses are checked before the connection is opened, because those in a URL are not passed to
      // `lookup`.
      if (!allowPrivateNetworks && ipaddr.isValid(host) && !isPublicAddress(host)) {
        callback(new ForbiddenAddress(), null)
      } else if (!allowPrivateNetworks && !ALLOWED_PORTS.has(options.port)) {
        callback(new ForbiddenAddress('a URL at port 80 or 443 is expected'), null)
      } else connect(options, callback)
    },
  })
}

/** Resolves to all addresses of a host name. */
type FindAddresses = (hostname: string) => Promise<LookupAddress[]>

/** Refuses addresses that are not public. */
function publicOnly(find: FindAddresses): FindAddresses {
  return async (hostname) => {
    if (isOfThisMachine(hostname)) throw new ForbiddenAddress()
    const addresses = await find(hostname)
    if (!addresses.every(({ address }) => isPublicAddress(address))) throw new ForbiddenAddress()
    return addresses
  }
}

/**
 * Resolves host names by the machine's name servers, without its hosts file. `dns.lookup` would keep one of the few
 * threads that also resolve the names of providers, for as long as the name server of a client's URL is silent.
 */
function addressesOfNameServers(): FindAddresses {
  let resolver = new Resolver(PATIENCE)
  let readMs = performance.now()
  return async (hostname) => {
    if (performance.now() - readMs > NAME_SERVERS_MS) {
      resolver = new Resolver(PATIENCE)
      readMs = performance.now()
    }
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    if (ipv4.status === 'rejected' && ipv6.status === 'rejected') throw ipv4.reason
    const listed = (found: typeof ipv4, family: number): LookupAddress[] =>
      found.status === 'rejected' ? [] : found.value.map((address) => ({ address, family }))
    return [...listed(ipv4, 4), ...listed(ipv6, 6)]
  }
}

/** Milliseconds and number of the tries of each name server. */
const PATIENCE = { timeout: 2_000, maxTimeout: 2_000, tries: 4 }
/** Milliseconds after which the addresses of the machine's name servers are read again. */
const NAME_SERVERS_MS = 60_000

/** Whether a name always means this machine (RFC 6761), so that no name server has to know it. */
function isOfThisMachine(hostname: string): boolean {
  return /(?:^|\.)localhost\.?$/i.test(hostname)
}

/** Resolves a host name as the machine does, by its hosts file too. Takes a thread until there is an answer. */
function systemAddresses(hostname: string): Promise<LookupAddress[]> {
  const { promise, resolve, reject } = Promise.withResolvers<LookupAddress[]>()
  lookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  return promise
}

/**
 * Resolves host names one at a time, so that the other threads resolve the names of providers. A name whose turn
 * comes later than `timeoutMs` is not resolved.
 */
export function inTurn(timeoutMs: number, find: FindAddresses): FindAddresses {
  let last = Promise.resolve()
  return async (hostname) => {
    const beganMs = performance.now()
    const before = last
    const { promise, resolve } = Promise.withResolvers<void>()
    last = promise
    await before
    try {
      if (performance.now() - beganMs > timeoutMs)
        throw new Error(`no other name was resolved within ${timeoutMs} ms`)
      return await find(hostname)
    } finally {
      resolve()
    }
  }
}

function lookupOf(find: FindAddresses): LookupFunction {
  const found = callbackify(find)
  return (hostname, options, callback) =>
    found(hostname, (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) callback(error ?? new ForbiddenAddress(), '', 0)
      else if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
}
