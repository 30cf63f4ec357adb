import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Chance } from './chance.ts'

/** Texts in which nothing must be found. */
export interface Negative {
  readonly family: string
  readonly text: string
}

const PER_FAMILY = 60

const FAMILIES: Readonly<Record<string, (chance: Chance) => string>> = {
  md5: (c) => `etag: "${createHash('md5').update(c.bytes(8)).digest('hex')}"`,
  sha1: (c) => `commit ${createHash('sha1').update(c.bytes(8)).digest('hex')}`,
  sha256: (c) => `sha256:${createHash('sha256').update(c.bytes(8)).digest('hex')} image`,
  'short hash': (c) => `fixed in ${c.hex(c.between(7, 12))} and ${c.hex(8)}`,
  uuid: (c) => `id=${c.uuid()}, parent ${c.uuid()}`,
  'upper uuid': (c) => `{${c.uuid().toUpperCase()}}`,
  base64: (c) => `data:image/png;base64,${c.bytes(c.between(20, 200)).toString('base64')}`,
  integrity: (c) => `"integrity": "sha512-${c.bytes(64).toString('base64')}",`,
  version: (c) =>
    `upgrade from ${c.below(30)}.${c.below(30)}.${c.below(300)} to v${c.below(30)}.${c.below(40)}.${c.below(9)}-rc.${c.below(9)}`,
  'version of four parts': (c) => `v${c.below(20)}.${c.below(10)}.${c.below(999)}.${c.below(99)}`,
  'version of a browser': (c) => `Chrome/${c.between(90, 140)}.0.0.0 Safari/537.36`,
  'object identifier': (c) => `1.3.6.1.4.1.${c.below(60_000)}.${c.below(9)}.${c.below(99)}`,
  timestamp: (c) => new Date(c.between(1.0e9, 1.8e9) * 1000).toISOString(),
  'local time': (c) => new Date(c.between(1.0e9, 1.8e9) * 1000).toISOString().replace('T', ' ').slice(0, 19),
  'log time': (c) =>
    `[${String(c.below(24)).padStart(2, '0')}:${String(c.below(60)).padStart(2, '0')}:${String(c.below(60)).padStart(2, '0')}.${c.digits(3)}] started`,
  'epoch seconds': (c) => `"created": ${c.between(1.0e9, 1.9e9)}`,
  'epoch milliseconds': (c) => `ts=${c.between(1.0e12, 1.9e12)}`,
  'order number': (c) => `Order ${c.digits(c.one([8, 9, 10, 12, 14]))} was shipped`,
  'order number with letters': (c) =>
    `${c.text(2, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')}-${c.digits(4)}-${c.digits(6)}`,
  invoice: (c) => `INV-20${c.between(10, 26)}-${c.digits(5)}, PO ${c.digits(6)}/${c.digits(2)}`,
  'tracking number': (c) => `1Z${c.text(6, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789')}${c.digits(10)}`,
  barcode: (c) => `EAN 5${c.digits(12)}`,
  isbn: (c) => `ISBN 978-${c.below(10)}-${c.digits(4)}-${c.digits(4)}-${c.below(10)}`,
  amount: (c) => `${c.between(1, 999)},${c.digits(3)},${c.digits(3)}.${c.digits(2)} USD`,
  coordinates: (c) => `${c.between(-89, 89)}.${c.digits(6)}, ${c.between(-179, 179)}.${c.digits(6)}`,
  mac: (c) => (c.hex(12).match(/../g) ?? []).join(':'),
  colour: (c) =>
    `color: #${c.hex(6)}; background: rgba(${c.below(256)}, ${c.below(256)}, ${c.below(256)}, 0.5)`,
  'hex dump': (c) => `0000${c.hex(4)}: ${(c.hex(32).match(/.{4}/g) ?? []).join(' ')}`,
  decimals: (c) => `0.${c.digits(16)} ${c.below(99)}.${c.digits(9)}e-${c.below(30)}`,
  range: (c) => `pages ${c.between(100, 400)}-${c.between(401, 900)}, 20${c.digits(2)}-20${c.digits(2)}`,
  path: (c) =>
    `/usr/lib/${c.hex(8)}/module-${c.below(99)}.${c.below(99)}/index.${c.hex(8)}.js:${c.below(999)}:${c.below(99)}`,
  'scope in code': (c) =>
    c.one([
      'std::vector<int>::iterator',
      'fe::add',
      'f64::MAX',
      'dead::beef()',
      'a::b::c',
      'Foo::Bar',
      'abc::def::fade',
      '::std::cout',
    ]) + ` // ${c.below(99)}`,
  'at sign in code': (c) =>
    `${c.one(['@app.route("/x")', 'import x from "@scope/pkg"', 'npm i react@18.2.0', 'logo@2x.png', 'git@github.com:org/repo.git', 'user@host', '@Override', 'a @ b.T', 'docker.io/x@sha256:1'])} ${c.below(99)}`,
  'card that fails its checksum': (c) => `4242 4242 4242 42${c.one(['41', '43', '44', '45', '46'])}`,
  'account that fails its checksum': (c) => `DE${c.one(['88', '90', '91'])}370400440532013000`,
  'number of no person': (c) => `${c.one(['000', '666', '912'])}-${c.between(10, 99)}-${c.digits(4)}`,
  'part number': (c) => `${c.digits(3)}-${c.digits(4)}-${c.digits(2)} rev ${c.below(9)}`,
  'address that is none': (c) => `${c.between(256, 999)}.${c.below(300)}.${c.below(300)}.${c.below(300)}`,
  'identifier in code': (c) =>
    `token_count = max_tokens_${c.below(99)}; secret_name: "projects/${c.digits(6)}/secrets/db-password"`,
  placeholder: (c) =>
    c.one([
      'sk-...',
      'api_key="<your key>"',
      'Bearer $TOKEN',
      'password: ********',
      'token = process.env.GITHUB_TOKEN',
      'API_KEY=your_api_key_here_please',
      'key: ${{ secrets.NPM_TOKEN }}',
      'sk-xxxx',
      'AKIA…',
      'password=changeme',
    ]) + ` ${c.below(99)}`,
  'word with a prefix of a key': (c) =>
    c.one([
      'task-scheduler-configuration-of-the-system',
      'risk-assessment-and-mitigation-plan',
      'desk-reservation',
      'sk_buff structure',
      'key-value-store',
      'npm_config_registry',
      'ghp_',
      'AIzawa',
      'hf_hub_download',
      'xai-grok',
      'SGML.parser.of',
    ]) + ` ${c.below(99)}`,
}

/** Sources and documents of this repository, which know of keys and addresses only by name. */
const FOLDERS = [
  'src/call',
  'src/limits',
  'src/accounts/ledger',
  'src/telemetry',
  'packages/wire/src/messages',
  'packages/http1/src',
]
const CODE_LINES = 900

/** Texts in which nothing must be found: those made here, and lines of code. */
export function negatives(): readonly Negative[] {
  const chance = new Chance(7)
  const result: Negative[] = []
  for (const [family, make] of Object.entries(FAMILIES))
    for (let n = 0; n < PER_FAMILY; n++) result.push({ family, text: make(chance) })
  const lines = FOLDERS.flatMap(linesOf)
  const step = lines.length / CODE_LINES
  for (let n = 0; n < CODE_LINES; n++)
    result.push({ family: 'code', text: lines[Math.floor(n * step)] as string })
  return result
}

function linesOf(folder: string): readonly string[] {
  const root = new URL('../../', import.meta.url)
  return readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .sort()
    .flatMap((name) => readFileSync(new URL(`${folder}/${name}`, root), 'utf8').split('\n'))
    .filter((line) => line.trim().length > 20)
}
