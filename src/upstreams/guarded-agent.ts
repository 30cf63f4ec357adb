import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'

/** An address that nobody outside may make us call. */
export class ForbiddenAddress extends Error {
  constructor(host: string) {
    super(`${host} is no public address`)
    this.name = 'ForbiddenAddress'
  }
}

/** Whether an address is somewhere on the public internet: everything else is private until shown otherwise. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast'
}

/**
 * Connections for addresses that callers name. A name is resolved once, every address that it has is checked, and the
 * connection goes to one that was; literals are checked as well. It sits on the socket, so that neither a redirect nor a
 * name that changes its mind gets around it.
 */
export function guardedAgent(allowPrivateNetworks: boolean, timeoutMs: number): Agent {
  const connect = buildConnector({
    timeout: timeoutMs,
    ...(allowPrivateNetworks ? {} : { lookup: publicLookup }),
  })
  return new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '')
      // A literal is never looked up.
      if (!allowPrivateNetworks && ipaddr.isValid(host) && !isPublicAddress(host)) {
        callback(new ForbiddenAddress(host), null)
      } else connect(options, callback)
    },
  })
}

const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const forbidden = !error && !addresses.every(({ address }) => isPublicAddress(address))
    const [first] = addresses ?? []
    if (error || forbidden || !first) callback(error ?? new ForbiddenAddress(hostname), '', 0)
    else if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
