import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isMetadataAddress } from '../domain/metadata-address.ts'

/**
 * Resolves a host name for a connection. Fails with `EMETADATA` if one of its addresses is a cloud's metadata
 * service. The connection uses a checked address, so that another DNS answer (DNS rebinding) cannot bypass
 * the check.
 */
export const lookupBlockingMetadata: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const forbidden = !error && addresses.some(({ address }) => isMetadataAddress(address))
    const [first] = addresses ?? []
    if (error || forbidden || !first) callback(error ?? refusal(hostname), '', 0)
    else if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

function refusal(hostname: string): NodeJS.ErrnoException {
  const error = new Error(`${hostname} is the name of a metadata service`)
  return Object.assign(error, { code: 'EMETADATA' })
}
