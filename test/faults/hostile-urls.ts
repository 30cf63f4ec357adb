import { PUBLIC_ADDRESS } from '../fixtures/network.ts'
import type { Zone } from '../fixtures/dns-server.ts'

/** The names of the test's name server. `rebind.test` changes its address at every query. */
export const ZONE: Zone = (name, nth) => {
  if (name === 'rebind.test') return [nth % 2 === 0 ? PUBLIC_ADDRESS : '127.0.0.1']
  if (name === 'rebind6.test') return nth % 2 === 0 ? [PUBLIC_ADDRESS] : ['::1']
  return NAMES.get(name) ?? []
}

const NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ['public.test', [PUBLIC_ADDRESS]],
  ['localhost', ['127.0.0.1', '::1']],
  ['printer.localhost', ['127.0.0.1']],
  ['loopback.test', ['127.0.0.1']],
  ['loopback6.test', ['::1']],
  ['metadata.test', ['169.254.169.254']],
  ['wire-server.test', ['168.63.129.16']],
  ['private10.test', ['10.0.0.1']],
  ['private172.test', ['172.16.0.1']],
  ['private192.test', ['192.168.0.1']],
  ['zero.test', ['0.0.0.0']],
  ['unique-local.test', ['fd00::1']],
  ['link-local.test', ['fe80::1']],
  ['mapped.test', ['::ffff:127.0.0.1']],
  ['compatible.test', ['::127.0.0.1']],
  ['nat64.test', ['64:ff9b::7f00:1']],
  ['6to4.test', ['2002:7f00:1::']],
  ['teredo.test', ['2001:0:7f00:1::']],
  // One forbidden address among permitted ones must be enough, because the connection may go to any of them.
  ['mixed.test', [PUBLIC_ADDRESS, '127.0.0.1']],
  ['mixed-other-way.test', ['10.0.0.1', PUBLIC_ADDRESS]],
  ['mixed6.test', [PUBLIC_ADDRESS, '::1']],
])

const IPV4 =
  `127.0.0.1 127.1 127.0.1 127.255.255.254 127.0.0.1. 0 0.0.0.0 0.1.2.3 0x7f000001 0x7f.0.0.1 0X7F.1 0177.0.0.1
  00000177.1 017700000001 2130706433 0x7f.0x0.0x0.0x1 ①②⑦.⓪.⓪.① 127。0。0。1 127%2e0%2e0%2e1 %31%32%37.0.0.1 10.0.0.1
  10.255.255.255 167772161 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 169.254.169.254 2852039166 0xa9fea9fe
  169.254.1.1 168.63.129.16 100.64.0.1 100.100.100.200 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
  239.255.255.255 240.0.0.1 255.255.255.255`.split(/\s+/)

const IPV6 =
  `::1 0:0:0:0:0:0:0:1 0000::0001 :: ::2 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe
  ::FFFF:169.254.169.254 ::127.0.0.1 ::10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::10.0.0.1
  2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe:: 2001:0:7f00:1:: fc00::1 fd00:ec2::254 fe80::1 fe80::1%25lo febf::1 fec0::1
  ff02::1 100::1 2001:db8::1 3fff::1 5f00::1 2001:10::1 2001:2::1 4000::1 8000::1`.split(/\s+/)

const OTHER_SCHEMES =
  `file:///etc/passwd FILE:///etc/passwd file://localhost/etc/passwd gopher://127.0.0.1:6379/_INFO
  ftp://127.0.0.1/a dict://127.0.0.1:11211/stat ldap://127.0.0.1/ ws://127.0.0.1/ jar:http://127.0.0.1!/a blob:http://127.0.0.1/a
  view-source:http://127.0.0.1/ http+unix://%2Frun%2Fdocker.sock/info unix:///run/docker.sock about:blank javascript:1
  //127.0.0.1/a 127.0.0.1 http: http:// data: data:,`.split(/\s+/)

/**
 * URLs that a client may try to have fetched, where a server listens on `port` of this machine. None of them
 * may be fetched.
 */
export function hostileUrls(port: number): string[] {
  const here = `127.0.0.1:${port}`
  const to = (target: string, status = 302): string =>
    `http://public.test/${status}?${encodeURIComponent(target)}`
  const names = [...NAMES.keys()].filter((name) => name !== 'public.test')
  return [
    ...IPV4.map((host) => `http://${host}/a.png`),
    ...IPV4.slice(0, 12).map((host) => `http://${host}:${port}/a.png`),
    ...IPV6.map((host) => `http://[${host}]/a.png`),
    ...IPV6.slice(0, 6).map((host) => `http://[${host}]:${port}/a.png`),
    ...names.flatMap((name) => [`http://${name}/a.png`, `https://${name}./a.png`]),
    ...['LOCALHOST', 'LocalHost', 'loopback.test', 'nowhere.test'].map((name) => `http://${name}:${port}/`),
    ...OTHER_SCHEMES,
    // URLs with user information, or with something similar.
    `http://ann@${here}/`,
    `http://public.test@${here}/`,
    `http://ann:secret@public.test/a.png`,
    `http://public.test%00@${here}/`,
    `http://${here}\\@public.test/a.png`,
    `http://public.test:80@${here}/`,
    `http://${here}#@public.test/a.png`,
    `http://${here}?@public.test/a.png`,
    // Unusual spellings.
    `http:${here}/`,
    `http:/${here}/`,
    `http:\\\\${here}\\`,
    `  http://${here}/`,
    `ht\ntp://${here}/`,
    `http://127.0.\t0.1:${port}/`,
    `http://127.0.0.1\r\nHost: public.test\r\n\r\n/`,
    `HTTP://${here}/`,
    // Ports that do not serve images.
    ...[1, 22, 25, 81, 5432, 6379, 8080, 8443, 65_535].map((each) => `http://public.test:${each}/a.png`),
    `https://public.test:80443/`,
    `http://${PUBLIC_ADDRESS}:${port}/a.png`,
    // Redirects from a public place to a private one.
    ...[301, 302, 303, 307, 308].map((status) => to(`http://${here}/a.png`, status)),
    ...['127.0.0.1', '[::1]', '169.254.169.254', '10.0.0.1', 'localhost', 'loopback.test', 'mixed.test'].map(
      (host) => to(`http://${host}/latest/meta-data/`),
    ),
    to('file:///etc/passwd'),
    to('gopher://127.0.0.1:6379/_INFO'),
    to('//127.0.0.1/'),
    to('http://ann@public.test/a.png'),
    to('http://public.test:6379/'),
    to(to(`http://${here}/`)),
    to(to(to(`http://${here}/`))),
    to(to(to(to('http://public.test/a.png')))),
  ]
}
