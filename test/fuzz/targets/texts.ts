import { BlockList, isIP } from 'node:net'
import { bearerKey } from '../../../src/accounts/authentication/key-from-request.ts'
import { lookupPartOfKey } from '../../../src/domain/api-key.ts'
import { toScaledInteger, decimalText, parseDecimal } from '../../../src/domain/decimal.ts'
import { parseAddresses } from '../../../src/domain/ip-allow-list.ts'
import { matchesPattern, patternError } from '../../../src/domain/search-pattern.ts'
import { isPublicAddress } from '../../../src/upstreams/ssrf-guard.ts'
import type { Target } from '../target.ts'
import { INHERITED } from '../../corpus/values.ts'

/** Address ranges from which no image may be fetched, checked by Node's own BlockList. */
const PRIVATE = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(address, prefix, 'ipv4')
const GLOBAL_IPV6 = new BlockList()
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6')
/** IPv6 transition prefixes into IPv4, and addresses for documentation. */
const ODD_IPV6 = new BlockList()
ODD_IPV6.addSubnet('2002::', 16, 'ipv6')
ODD_IPV6.addSubnet('2001::', 32, 'ipv6')
ODD_IPV6.addSubnet('2001:db8::', 32, 'ipv6')

function isPrivate(address: string): boolean {
  if (isIP(address) === 4) return PRIVATE.check(address)
  const isMapped = /^::ffff:/i.test(address)
  if (isMapped) return PRIVATE.check(address, 'ipv6')
  return !GLOBAL_IPV6.check(address, 'ipv6') || ODD_IPV6.check(address, 'ipv6')
}

/** Parsers of short texts: addresses, keys, numbers, patterns. */
export const TEXTS = {
  'address-lists': {
    repeated: [['', '10.0.0.0/8\n', '::1']],
    seeds: ['10.0.0.0/8\n192.168.1.1', '::1\nfe80::/10', '0.0.0.0/0', '::ffff:10.0.0.1/104'],
    tokens: ['/', '.', ':', '::', '\n', '0', '255', '256', '%eth0', '/0', '/33', '/129', 'ffff', '-1', ' '],
    run(input) {
      const lines = input.toString().split('\n')
      const set = parseAddresses(lines)
      for (const line of lines)
        if (set && !set(line.split('/')[0] ?? '')) throw new Error(`${line} is not on its list`)
      isPublicAddress(lines[0] ?? '')
    },
  },
  'api-keys': {
    repeated: [
      ['Bearer ', 'sk-', 'a'],
      ['Bearer', ' ', 'a'],
      ['Bearer a', ' ', 'a'],
    ],
    seeds: ['Bearer sk-abc123', 'bearer   sk-sk-ann-1', 'sk-'],
    tokens: ['sk-', '-', ' ', 'Bearer', '\t', '\0', 'é', 'a'.repeat(130), ...INHERITED],
    run(input) {
      const text = input.toString('latin1')
      for (const sent of [text, bearerKey(text) ?? '']) {
        const key = lookupPartOfKey(sent)
        if (key !== undefined && !/^[0-9A-Za-z]{1,128}$/.test(key)) throw new Error(`the key ${key}`)
        if (lookupPartOfKey(`sk-${sent}`) !== key) throw new Error('sk- is not taken off')
      }
    },
  },
  'picture-hosts': {
    repeated: [['10.0.0.', '1', '']],
    seeds: ['127.0.0.1', '[::1]', '[::ffff:10.0.0.1]', '8.8.8.8', '[2606:4700::1]', '0x7f.1', '2130706433'],
    tokens: [
      '.',
      ':',
      '[',
      ']',
      '0x',
      '0',
      '7f',
      '255',
      '10',
      '169.254.169.254',
      'ffff',
      '64:ff9b::',
      '@',
      '%25',
      '。',
    ],
    run(input) {
      let host: string
      try {
        host = new URL(`http://${input.toString()}/`).hostname.replace(/^\[|\]$/g, '')
      } catch {
        return
      }
      if (isIP(host) > 0 && isPublicAddress(host) && isPrivate(host))
        throw new Error(`${host} is called public`)
    },
  },
  decimals: {
    repeated: [['0.', '1', '']],
    seeds: ['0.1', '-2.50', '1.5e3', '1e-7', '100000000000'],
    tokens: ['e', 'E', '-', '+', '.', '0', '9', '00', 'e-12', 'e99', ' ', 'Infinity', '0x1', '٣'],
    run(input) {
      const text = input.toString()
      const read = parseDecimal(text)
      if (!read) return
      const again = parseDecimal(decimalText(read))
      const scale = Math.max(read.scale, again?.scale ?? 0)
      if (!again || toScaledInteger(again, scale) !== toScaledInteger(read, scale))
        throw new Error(`${text} is written otherwise`)
      const [meant, got] = [Number(text), Number(decimalText(read))]
      if (meant !== got) throw new Error(`${text} is read as ${got}`)
    },
  },
  'search-patterns': {
    repeated: [['a%\n', 'ab', '']],
    seeds: ['%a%\nbanana', 'a%\nab', 'ab\nab', '%a_\\\nxa_\\'],
    tokens: ['%', '_', '\\', '\n', 'a', 'b', '.', '*', '(', '😀'],
    run(input) {
      const [pattern = '', text = ''] = input.toString().split('\n')
      if (patternError(pattern) !== undefined || text.length > 200) return
      const parts = pattern.split('%').map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
      if (matchesPattern(pattern, text) !== new RegExp(`^${parts.join('[^]*')}$`).test(text))
        throw new Error(`${pattern} and ${text}`)
    },
  },
} satisfies Readonly<Record<string, Target>>
