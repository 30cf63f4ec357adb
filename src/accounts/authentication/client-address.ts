import { isIP } from 'node:net'
import type { Request } from '../../http/request.ts'
import { peerAddress, withoutIpv6Mapping, trustedProxyAddresses } from './trusted-peer.ts'

/** Determines the address that a request comes from. */
export interface ClientAddress {
  (request: Request): string
  /** Whether this address belongs to a trusted proxy. */
  readonly trusts: (peer: string) => boolean
}

/** Reports of what is wrong with the headers of proxies. */
export interface ProxyReports {
  /** Called once: a peer that is not trusted sends the header, which is ignored. */
  readonly onUntrusted: () => void
  /**
   * Called once an hour at most: an entry of the header is no address. `form` is the entry with `a` for each
   * letter and `9` for each digit.
   */
  readonly onUnreadable: (proxy: string, form: string) => void
}

/**
 * Returns the client's address: that of the socket's peer, or, if the peer is a trusted proxy, the last
 * address in X-Forwarded-For that is not itself a trusted proxy, with or without a port
 * (docs/configuration.md: Options). Text that is not an address ends the search.
 */
export function clientAddress(
  trustedProxies: readonly string[],
  { onUntrusted, onUnreadable }: ProxyReports,
  nowMs: () => number = () => performance.now(),
): ClientAddress {
  const trusted = trustedProxyAddresses(trustedProxies)
  let warned = false
  let nextReportMs = Number.NEGATIVE_INFINITY
  const reportUnreadable = (proxy: string, entry: string): void => {
    if (nowMs() < nextReportMs) return
    nextReportMs = nowMs() + REPORT_INTERVAL_MS
    onUnreadable(proxy, formOf(entry))
  }
  const lastUntrusted = (forwarded: string, peer: string): string => {
    let address = peer
    for (const hop of forwarded.split(',').toReversed()) {
      const candidate = forwardedAddress(hop.trim())
      if (candidate === undefined) {
        reportUnreadable(peer, hop.trim())
        return address
      }
      address = candidate
      if (!trusted(candidate)) return candidate
    }
    return address
  }
  const addressOf = (request: Request): string => {
    const peer = peerAddress(request)
    const forwarded = request.headers['x-forwarded-for']
    if (forwarded === undefined) return peer
    if (trusted(peer)) return lastUntrusted(forwarded, peer)
    if (!warned) onUntrusted()
    warned = true
    return peer
  }
  return Object.assign(addressOf, { trusts: trusted })
}

const REPORT_INTERVAL_MS = 3_600_000

/** `203.0.113.7:51008`, `[2001:db8::5]` and `[2001:db8::5]:64828`, as some balancers write an address. */
const WITH_PORT = /^(?:\[([\da-f:.]+)\]|([\d.]+)(?=:))(?::(\d{1,5}))?$/i

/** The address of an entry of X-Forwarded-For; undefined if there is none. */
function forwardedAddress(entry: string): string | undefined {
  const [, bracketed, plain, port = '0'] = WITH_PORT.exec(entry) ?? []
  const address = withoutIpv6Mapping(bracketed ?? plain ?? entry)
  // Brackets are for IPv6 alone, and a port is one of 65,535.
  const isAddress = bracketed === undefined ? isIP(address) !== 0 : isIP(bracketed) === 6
  return isAddress && Number(port) <= 65_535 ? address : undefined
}

const MAX_FORM_LENGTH = 60

function formOf(entry: string): string {
  const form = entry
    .slice(0, MAX_FORM_LENGTH)
    .replace(/\p{L}/gu, 'a')
    .replace(/\d/g, '9')
    .replace(/[^ -~]/gu, '?')
  return form === '' ? 'nothing' : form
}
