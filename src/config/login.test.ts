import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readFileContent } from './read-sections.ts'
import { formatDiagnostic } from './diagnostics.ts'
import { parseYamlDocument } from './document.ts'
import { readKeysFromFiles } from './read-file.ts'

const SECRET = 'a-secret-that-nobody-may-see'
const FIELDS = {
  name: 'corp',
  issuer: 'https://id.example.com/realms/corp',
  client_id: 'sluice',
  client_secret: '${SECRET}',
}

function read(text: string, folder = '/nowhere') {
  const document = parseYamlDocument(text, (name) => (name === 'SECRET' ? SECRET : undefined))
  const { content, diagnostics } = readFileContent(readKeysFromFiles(document, folder))
  return { content, said: diagnostics.map((one) => formatDiagnostic({ file: 'gateway.yaml', ...one })) }
}

/** A file whose provider begins at line 3, one field in each line. */
function provider(fields: Readonly<Record<string, string | undefined>>, before = ''): string {
  const lines = Object.entries({ ...FIELDS, ...fields }).filter(([, value]) => value !== undefined)
  return `${before}login:\n  oidc:\n    - ${lines.map(([key, value]) => `${key}: ${value}`).join('\n      ')}\n`
}

test('an OIDC provider in gateway.yaml needs only its four required fields, and has defaults for the other ones', () => {
  const { content, said } = read(provider({}))
  expect(said).toEqual([])
  expect(content?.login).toEqual({
    password: true,
    oidc: [
      {
        name: 'corp',
        issuer: FIELDS.issuer,
        clientId: 'sluice',
        clientSecret: SECRET,
        scopes: ['openid', 'profile', 'email'],
        usernameClaim: 'preferred_username',
        groupClaim: undefined,
        groups: new Map(),
        admins: [],
        create: true,
      },
    ],
  })
})

test('the scope openid of an OIDC provider is always requested, and the order of its mapped groups is kept', () => {
  const groups = 'groups: { lab: {}, staff: {} }\n'
  const more = { scopes: '[groups]', group_claim: 'roles', groups: '{ z: lab, a: staff }', admins: '[ops]' }
  const [one] = read(provider(more, groups)).content?.login.oidc ?? []
  expect(one?.scopes).toEqual(['openid', 'groups'])
  expect([...(one?.groups ?? [])]).toEqual([
    ['z', 'lab'],
    ['a', 'staff'],
  ])
})

describe('refused login settings', () => {
  test.each([
    [
      'a name for paths',
      { name: 'My Corp' },
      'gateway.yaml:3: login.oidc[0].name: expected a name of up to 40 lower-case letters, digits and hyphens, found "My Corp"',
    ],
    [
      'no issuer',
      { issuer: undefined },
      'gateway.yaml:3: login.oidc[0].issuer: expected an https:// or http:// URL, the issuer as its metadata states it, found nothing',
    ],
    [
      'an invalid issuer',
      { issuer: 'id.example.com' },
      'gateway.yaml:4: login.oidc[0].issuer: expected an https:// or http:// URL, the issuer as its metadata states it, found "id.example.com"',
    ],
    [
      'the address of the metadata',
      { issuer: 'https://id.example.com/.well-known/openid-configuration' },
      'gateway.yaml:4: login.oidc[0].issuer: expected the issuer alone: /.well-known/openid-configuration is added, found "https://id.example.com/.well-known/openid-configuration"',
    ],
    [
      'an issuer with a query',
      { issuer: 'https://id.example.com/?x=y' },
      'gateway.yaml:4: login.oidc[0].issuer: expected a URL without ? or #, found "https://id.example.com/?x=y"',
    ],
    [
      "a cloud's metadata service",
      { issuer: 'http://169.254.169.254' },
      `gateway.yaml:4: login.oidc[0].issuer: expected another address than that of a cloud's metadata service, found "http://169.254.169.254"`,
    ],
    [
      'a secret with spaces',
      { client_secret: '"a b"' },
      'gateway.yaml:6: login.oidc[0].client_secret: expected a secret: printable characters without spaces, found something else',
    ],
    [
      'a variable that is not set',
      { client_secret: '${OTHER}' },
      'gateway.yaml:6: login.oidc[0].client_secret: expected the environment variable OTHER to be set',
    ],
    [
      'a secret in a file that is not there',
      { client_secret: 'file:./secret' },
      "gateway.yaml:6: login.oidc[0].client_secret: expected a file that can be read: ENOENT: no such file or directory, open '/nowhere/secret'",
    ],
    [
      'groups without a claim',
      { groups: '{ a: default }' },
      'gateway.yaml:7: login.oidc[0].groups: expected group_claim beside it',
    ],
    [
      'administrators without a claim',
      { admins: '[a]' },
      'gateway.yaml:7: login.oidc[0].admins: expected group_claim beside it',
    ],
    [
      'a group that is not declared',
      { group_claim: 'g', groups: '{ a: defualt }' },
      'gateway.yaml:8: login.oidc[0].groups.a: expected a group that groups declares (default?), found "defualt"',
    ],
    [
      'a scope with a space',
      { scopes: '["openid email"]' },
      'gateway.yaml:7: login.oidc[0].scopes[0]: expected a scope without spaces, found "openid email"',
    ],
    [
      'a mistyped key',
      { usernameclaim: 'x' },
      'gateway.yaml:7: login.oidc[0].usernameclaim: unknown key, expected username_claim',
    ],
  ])('gateway.yaml is refused for %s', (_, fields, sentence) => {
    expect(read(provider(fields)).said).toEqual([sentence])
  })

  test('gateway.yaml is refused for two OIDC providers with the same name', () => {
    const twice = `${provider({})}    - { name: corp, issuer: "https://b.example", client_id: x, client_secret: y }\n`
    expect(read(twice).said).toEqual([
      'gateway.yaml:7: login.oidc[1].name: expected a different name, another entry has the same',
    ])
  })

  test.each([
    'ai.example.com',
    'https://ai.example.com/',
    'https://ai.example.com/x',
    'ftp://ai.example.com',
  ])('gateway.yaml is refused for the public address %s', (url) => {
    expect(read(`options:\n  public_url: ${url}\n`).said).toEqual([
      `gateway.yaml:2: options.public_url: expected an origin such as https://ai.example.com, without a path, found "${url}"`,
    ])
  })
})

test.each(['/ai', '/team/ai', '/a-b_c.d~e/9'])('gateway.yaml may name the base path %s', (path) => {
  expect(read(`options:\n  base_path: ${path}\n`).said).toEqual([])
})

test.each([
  'ai',
  '/ai/',
  '/',
  '/a//b',
  '/a b',
  '/%61i',
  '/a?b',
  '/..',
  '/a/./b',
  'https://ai.example.com/ai',
  '/ü',
])('gateway.yaml is refused for the base path %s', (path) => {
  expect(read(`options:\n  base_path: "${path}"\n`).said).toEqual([
    `gateway.yaml:2: options.base_path: expected a path such as /ai, without / at its end, found "${path}"`,
  ])
})

test('the client secret of an OIDC provider may be in a separate file, whose last line break is ignored', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-secret-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), `${SECRET}\n`)
  const { content, said } = read(provider({ client_secret: 'file:./secret' }), folder)
  expect(said).toEqual([])
  expect(content?.login.oidc[0]?.clientSecret).toBe(SECRET)
})

test('an error about an invalid OIDC client secret does not repeat the secret', () => {
  for (const fields of [{ client_secret: `"${SECRET} x"` }, { client_secret: `[${SECRET}]` }])
    expect(read(provider(fields)).said.join()).not.toContain(SECRET)
})
