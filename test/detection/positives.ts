import { Chance } from './chance.ts'

/** A value that must be found, within a text. */
export interface Positive {
  readonly kind: string
  readonly value: string
  readonly text: string
}

/** Keys as providers describe them, made here because a literal would look like a leak to scanners of repositories. */
const SECRETS: readonly ((chance: Chance) => string)[] = [
  (c) => `sk-ant-api03-${c.base64url(93)}AA`,
  (c) => `sk-ant-admin01-${c.base64url(93)}AA`,
  (c) => `sk-${c.base62(20)}T3BlbkFJ${c.base62(20)}`,
  (c) => `sk-proj-${c.base64url(74)}T3BlbkFJ${c.base64url(74)}`,
  (c) => `sk-svcacct-${c.base64url(74)}`,
  (c) => `sk-${c.hex(32)}`,
  (c) => `sk-${c.base62(48)}`,
  (c) => `sk-or-v1-${c.hex(64)}`,
  (c) => `AIzaSy${c.base64url(33)}`,
  (c) => `gsk_${c.base62(52)}`,
  (c) => `xai-${c.base62(80)}`,
  (c) => `pplx-${c.base62(48)}`,
  (c) => `hf_${c.base62(34)}`,
  (c) => `r8_${c.base62(37)}`,
  (c) => `nvapi-${c.base64url(64)}`,
  (c) => `tvly-dev-${c.base62(32)}`,
  (c) => `lsv2_pt_${c.hex(32)}_${c.hex(10)}`,
  (c) => `AKIA${c.text(16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}`,
  (c) => `ASIA${c.text(16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}`,
  (c) => `GOCSPX-${c.base64url(28)}`,
  (c) => `ya29.${c.base64url(160)}`,
  (c) => `${c.base62(3)}8Q~${c.base62(34)}`,
  (c) => `LTAI${c.base62(20)}`,
  (c) => `dop_v1_${c.hex(64)}`,
  (c) => `dapi${c.hex(32)}`,
  (c) => `sbp_${c.hex(40)}`,
  (c) => `ghp_${c.base62(36)}`,
  (c) => `gho_${c.base62(36)}`,
  (c) => `ghs_${c.base62(36)}`,
  (c) => `github_pat_${c.base62(22)}_${c.base62(59)}`,
  (c) => `glpat-${c.base64url(20)}`,
  (c) => `glrt-${c.base64url(20)}`,
  (c) => `ATATT3x${c.base64url(180)}=${c.hex(8).toUpperCase()}`,
  (c) => `npm_${c.base62(36)}`,
  (c) => `pypi-AgEIcHlwaS5vcmc${c.base64url(150)}`,
  (c) => `rubygems_${c.hex(48)}`,
  (c) => `dckr_pat_${c.base64url(27)}`,
  (c) => `PMAK-${c.hex(24)}-${c.hex(34)}`,
  (c) => `xoxb-${c.digits(12)}-${c.digits(13)}-${c.base62(24)}`,
  (c) => `xoxp-${c.digits(12)}-${c.digits(12)}-${c.digits(13)}-${c.hex(32)}`,
  (c) => `xapp-1-A${c.text(10, 'ABCDEFGHJKMNPQRSTVWXYZ0123456789')}-${c.digits(13)}-${c.hex(64)}`,
  (c) =>
    `hooks.slack.com/services/T${c.base62(10).toUpperCase()}/B${c.base62(10).toUpperCase()}/${c.base62(24)}`,
  (c) => `M${c.base62(23)}.${c.base64url(6)}.${c.base64url(38)}`,
  (c) => `${c.between(1_000_000_000, 7_999_999_999)}:AA${c.base64url(33)}`,
  (c) => `SG.${c.base64url(22)}.${c.base64url(43)}`,
  (c) => `key-${c.hex(32)}`,
  (c) => `${c.hex(32)}-us${c.between(1, 21)}`,
  (c) => `xkeysib-${c.hex(64)}-${c.base62(16)}`,
  (c) => `SK${c.hex(32)}`,
  (c) => `sk_live_${c.base62(24)}`,
  (c) => `rk_test_${c.base62(99)}`,
  (c) => `whsec_${c.base62(32)}`,
  (c) => `shpat_${c.hex(32)}`,
  (c) => `hvs.${c.base64url(92)}`,
  (c) => `${c.base62(14)}.atlasv1.${c.base64url(67)}`,
  (c) => `dp.pt.${c.base62(43)}`,
  (c) => `AGE-SECRET-KEY-1${c.text(58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}`,
  (c) => `glsa_${c.base62(32)}_${c.hex(8)}`,
  (c) => `NRAK-${c.text(27, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789')}`,
  (c) => `ntn_${c.digits(11)}${c.base62(35)}`,
  (c) => `lin_api_${c.base62(40)}`,
  (c) => `pat${c.base62(14)}.${c.hex(64)}`,
  (c) => `figd_${c.base64url(40)}`,
  (c) => `pat-eu1-${c.uuid()}`,
  (c) => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    return `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: c.uuid(), iat: 17e8 })}.${c.base64url(43)}`
  },
  (c) => privateKey(c, 'RSA PRIVATE KEY', '\n'),
  (c) => privateKey(c, 'PRIVATE KEY', String.raw`\n`),
  (c) => privateKey(c, 'OPENSSH PRIVATE KEY', '\n'),
  (c) => privateKey(c, 'EC PRIVATE KEY', '\r\n'),
]

function privateKey(chance: Chance, name: string, newline: string): string {
  const body = chance.bytes(chance.between(118, 1190)).toString('base64')
  const lines = body.match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${name}-----`, ...lines, `-----END ${name}-----`].join(newline)
}

/** Values whose name tells that they are secret. */
const NAMED_SECRETS: readonly ((chance: Chance) => { before: string; value: string; after: string })[] = [
  (c) => ({ before: 'api_key = "', value: c.base62(32), after: '"' }),
  (c) => ({ before: 'export SERVICE_API_KEY=', value: c.base62(40), after: '\nrun' }),
  (c) => ({ before: '{"client_secret":"', value: c.base62(36), after: '"}' }),
  (c) => ({ before: 'password: ', value: c.base62(24), after: '' }),
  (c) => ({
    before: 'aws_secret_access_key = ',
    value: c.text(40, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+'),
    after: '\n',
  }),
  (c) => ({ before: 'Authorization: Bearer ', value: c.base64url(43), after: '\r\n' }),
  (c) => ({ before: "-H 'authorization: Bearer ", value: c.hex(40), after: "'" }),
  (c) => ({ before: 'auth_token := `', value: c.base62(30), after: '`' }),
]

/** Addresses of mail; RFC 2606 and RFC 6761 reserve the names of the hosts. */
const EMAILS = [
  'ann@example.com',
  'Bob.Miller@example.org',
  'c+tag@mail.example.net',
  'first.last@sub.domain.example.co.uk',
  'x@example.io',
  "o'neil@example.ie",
  'under_score@example.com',
  'UPPER@EXAMPLE.COM',
  '12345@example.de',
  'a-b-c@example-host.com',
  'müller@example.de',
  '用户@例子.公司',
  'jörg@bücher.example',
  'user%relay@example.org',
  'very.long.name.of.a.person.in.a.company@department.example.com',
  'a@b.cd',
  'me@xn--bcher-kva.example',
  'info@example.museum',
  'dev@team.example.app',
  'sales@example.travel',
  'anna.maria@example.it',
  'пользователь@пример.рф',
  'j.smith99@example.edu',
  'no-reply@notify.example.com',
  'q@example.ai',
]

/**
 * Numbers that regulators keep free for films and examples (NANPA 555-01xx; Ofcom; Arcep; Bundesnetzagentur; ACMA; PTS;
 * TRAI has none, so its form with invented digits), and the forms of other countries with invented digits.
 */
const PHONES = [
  '+1 212-555-0123',
  '+1 (415) 555-0199',
  '(212) 555-0147',
  '212-555-0100',
  '415.555.0188',
  '1-800-555-0199',
  '617 555 0123',
  '(617)555-0177',
  '+12125550123',
  '+44 20 7946 0958',
  '020 7946 0123',
  '0117 496 0234',
  '+44 7700 900123',
  '07700 900456',
  '01632 960983',
  '+442079460000',
  '+33 1 99 00 12 34',
  '01 99 00 45 67',
  '06.39.98.12.34',
  '+33639981234',
  '+49 30 23125 000',
  '030 23125123',
  '0171 39200 12',
  '+49 (0)89 99998 123',
  '0221/4710123',
  '+4989999981234',
  '+61 491 570 156',
  '+61 2 5550 1234',
  '+46 8 465 004 12',
  '08-465 004 12',
  '+31 20 123 4567',
  '020-1234567',
  '+86 138 0013 8000',
  '13800138000',
  '138-0013-8000',
  '+8613912345678',
  '186 1234 5678',
  '010-12345678',
  '021 5555 1234',
  '+81 3-1234-5678',
  '03-1234-5678',
  '090-1234-5678',
  '+82 10-1234-5678',
  '010-1234-5678',
  '+91 98765 43210',
  '+919876543210',
  '+55 11 91234-5678',
  '+52 55 1234 5678',
  '+39 06 1234 5678',
  '+34 612 345 678',
  '+41 44 668 18 00',
  '044 668 18 00',
  '+43 1 5880 1000',
  '+7 495 123-45-67',
  '+90 212 123 45 67',
  '+971 50 123 4567',
  '+27 21 123 4567',
  '0049 30 123456',
  '+353 1 679 9000',
  '+48 22 123 45 67',
]

/** Numbers that processors publish for tests. */
const CARDS = [
  '4242424242424242',
  '4000056655665556',
  '5555555555554444',
  '2223003122003222',
  '5200828282828210',
  '5105105105105100',
  '378282246310005',
  '371449635398431',
  '6011111111111117',
  '6011000990139424',
  '3056930009020004',
  '36227206271667',
  '3566002020360505',
  '6200000000000005',
  '4000000000000002',
  '4111111111111111',
  '4012888888881881',
  '4222222222222',
  '30569309025904',
  '38520000023237',
  '3530111333300000',
  '6759649826438453',
  '4000002500003155',
  '5200007840000022',
  '4917484589897107',
  '5454545454545454',
]

/** Examples of the IBAN registry of SWIFT. */
const IBANS = [
  'GB29NWBK60161331926819',
  'DE89370400440532013000',
  'FR1420041010050500013M02606',
  'NL91ABNA0417164300',
  'ES9121000418450200051332',
  'IT60X0542811101000000123456',
  'CH9300762011623852957',
  'BE68539007547034',
  'AT611904300234573201',
  'SE4550000000058398257466',
  'NO9386011117947',
  'DK5000400440116243',
  'FI2112345600000785',
  'PL61109010140000071219812874',
  'PT50000201231234567890154',
  'IE29AIBK93115212345678',
  'LU280019400644750000',
  'CZ6508000000192000145399',
  'GR1601101250000000012300695',
  'HU42117730161111101800000000',
  'SA0380000000608010167519',
  'AE070331234567890123456',
  'TR330006100519786457841326',
  'IL620108000000099999999',
  'BR9700360305000010009795493P1',
  'MT84MALT011000012345MTLCAST001S',
  'KW81CBKU0000000000001234560101',
  'HR1210010051863000160',
  'RO49AAAA1B31007593840000',
  'SK3112000000198742637541',
  'SI56191000000123438',
  'LT121000011101001000',
  'EE382200221020145685',
  'BG80BNBG96611020345678',
]

/** Among them the ranges for documentation (RFC 5737, RFC 3849) and private ones. */
const ADDRESSES = [
  '192.0.2.17',
  '198.51.100.254',
  '203.0.113.9',
  '10.1.2.3',
  '172.16.254.1',
  '192.168.0.101',
  '8.8.8.8',
  '127.0.0.1',
  '100.64.12.99',
  '169.254.10.20',
  '2001:db8::1',
  '2001:db8:85a3::8a2e:370:7334',
  '2001:0db8:0000:0000:0000:ff00:0042:8329',
  'fe80::1ff:fe23:4567:890a',
  '::1',
  'fd12:3456:789a::1',
  '2001:DB8::A',
  '::ffff:192.0.2.128',
  '2606:4700:4700::1111',
  'fe80::2',
]

const PROSE: readonly ((value: string) => string)[] = [
  (value) => `Please write to ${value} before Friday.`,
  (value) => `{"field":"${value}","n":3}`,
  (value) => `value: ${value}\nnext: 1`,
  (value) => `(${value})`,
  (value) => `我的资料是${value}，请确认。`,
  (value) => value,
  (value) => `a,${value},b`,
  (value) => `| name | ${value} |`,
]

const AFTER_LETTERS = new Set(['EMAIL'])

/** Values that must be found, with the texts around them. */
export function positives(): readonly Positive[] {
  const chance = new Chance(20_261_125)
  const result: Positive[] = []
  const add = (kind: string, value: string, times = 2) => {
    for (let time = 0; time < times; time++) {
      // A letter of any script can belong to an address, so that it needs something between.
      const context = chance.one(PROSE.filter((_, at) => at !== 4 || !AFTER_LETTERS.has(kind)))
      result.push({ kind, value, text: context(value) })
    }
  }
  for (const make of SECRETS) for (let n = 0; n < 2; n++) add('SECRET', make(chance), 1)
  for (const make of NAMED_SECRETS)
    for (let n = 0; n < 3; n++) {
      const { before, value, after } = make(chance)
      result.push({ kind: 'SECRET', value, text: before + value + after })
    }
  for (const value of EMAILS) add('EMAIL', value)
  for (const value of PHONES) add('PHONE', value)
  for (const value of CARDS) {
    add('CREDIT_CARD', value, 1)
    const groups =
      value.length === 15 ? /(.{4})(.{6})(.{5})/ : value.length === 14 ? /(.{4})(.{6})(.{4})/ : undefined
    if (groups) add('CREDIT_CARD', value.replace(groups, '$1 $2 $3'), 1)
    else if (value.length === 16)
      add('CREDIT_CARD', value.replaceAll(/.{4}(?=.)/g, `$&${chance.one([' ', '-'])}`), 1)
  }
  for (const value of IBANS) {
    add('IBAN', value, 1)
    add('IBAN', value.replaceAll(/.{4}(?=.)/g, '$& '), 1)
  }
  for (const value of ADDRESSES) add('IP', value)
  for (let n = 0; n < 24; n++) {
    const area = chance.one(['001', '123', '219', '457', '665', '667', '772', '899'])
    add(
      'SSN',
      `${area}-${String(chance.between(1, 99)).padStart(2, '0')}-${String(chance.between(1, 9999)).padStart(4, '0')}`,
      1,
    )
  }
  return result
}
