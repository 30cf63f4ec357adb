import { describe, expect, test } from 'vitest'
import { composeFile, gatewaysOf, rootFile, variablesOf } from './compose-file.ts'

const FILES = ['docker-compose.yml', 'docker-compose.scaled.yml']

/** The names in the first column of the table below a heading of a page. */
function documented(page: string, heading: string): Set<string> {
  const section = rootFile(page).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const cells = [...section.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) => cell)
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)))
}

const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1])

describe.each(FILES)('%s', (name) => {
  const file = composeFile(name)
  const gateways = gatewaysOf(file)

  test('a Docker Compose file sets only environment variables that the gateway knows', () => {
    const known = documented('docs/configuration.md', 'Environment')
    expect(known.size).toBeGreaterThan(10)
    for (const { environment = {} } of gateways) {
      expect(Object.keys(environment).filter((variable) => !known.has(variable))).toEqual([])
    }
  })

  test('a Docker Compose file reads only documented variables, and contains no secret', () => {
    const told = documented('docs/scaling.md', 'Environment')
    const variables = variablesOf(file)
    expect([...variables.keys()].filter((variable) => !told.has(variable))).toEqual([])
    expect(file.text.match(/\$\{(?!\w+:[-?])/g)).toBeNull()
    for (const [variable, { kind, text }] of variables) {
      if (!/SECRET|PASSWORD|KEY/.test(variable)) continue
      if (kind === 'default') expect(text, variable).toBe('')
      else expect(text, variable).toMatch(/^set it to .*openssl rand/)
    }
  })

  test('a Docker Compose file sets nothing by a default in place of gateway.env, over which `environment` has precedence', () => {
    for (const { environment = {} } of gateways)
      expect(Object.entries(environment).filter(([, value]) => /\$\{\w+:-/.test(String(value)))).toEqual([])
  })

  test('a Docker Compose file gives each gateway a volume of its own and no other writable place', () => {
    const data = gateways.map(({ volumes = [] }) => volumes.filter((volume) => volume.endsWith(':/data')))
    for (const volumes of data) expect(volumes).toHaveLength(1)
    expect(new Set(data.flat()).size).toBe(gateways.length)
    for (const [volume] of data) expect(Object.keys(file.volumes)).toContain(volume?.split(':')[0])
    for (const gateway of gateways) {
      expect(gateway.read_only).toBe(true)
      expect(gateway.volumes).toEqual(['./config:/config:ro', expect.stringMatching(/:\/data$/)])
    }
  })

  test('a Docker Compose file gives each program minimal privileges, and third-party images a fixed version', () => {
    for (const [service, { build, image, cap_drop, security_opt, user }] of Object.entries(file.services)) {
      expect(security_opt, service).toEqual(['no-new-privileges:true'])
      if (build === undefined) expect(image, service).toMatch(/:\d+\.\d+(\.\d+)?(-\w+)?$/)
      // The entry point of the PostgreSQL image changes the owner of its data, and then its own user.
      if (service !== 'postgres') expect(cap_drop, service).toEqual(['ALL'])
      if (service === 'redis') expect(user).toBe('redis')
    }
  })

  test('a Docker Compose file gives running calls time to end, and publishes ports on loopback only', () => {
    const drain = rootFile('docs/configuration.md').match(/`drain_timeout` \| `(\d+)s`/)?.[1]
    expect(Number(drain)).toBeGreaterThan(0)
    for (const { stop_grace_period = '' } of gateways) {
      // Five more seconds are for the charges of aborted calls.
      expect(seconds(stop_grace_period)).toBeGreaterThan(Number(drain) + 5)
    }
    const ports = Object.values(file.services).flatMap(({ ports = [] }) => ports)
    expect(ports).toEqual([`\${SLUICE_ADDRESS:-127.0.0.1:3000}:3000`])
  })
})

test('the scaled Compose file puts PostgreSQL and Redis into an internal network, and the balancer into another network', () => {
  const { services, text } = composeFile('docker-compose.scaled.yml')
  for (const name of ['postgres', 'redis']) expect(services[name]?.networks).toEqual(['inside'])
  expect(services['balancer']?.networks).toEqual(['outside'])
  expect(text).toMatch(/ {2}inside:\n {4}internal: true/)
})

test('each gateway of the scaled Compose file can be probed and scraped by itself, at an address that is not published', () => {
  const file = composeFile('docker-compose.scaled.yml')
  for (const { environment, ports } of gatewaysOf(file)) {
    expect(environment?.['ADMIN_LISTEN']).toBe('0.0.0.0:9100')
    expect(ports).toBeUndefined()
  }
})

test('the balancer of the scaled Compose file knows every gateway, waits longer than any call, and does not buffer', () => {
  const { services } = composeFile('docker-compose.scaled.yml')
  const balancer = rootFile('deploy/haproxy.cfg')
  const gateways = Object.keys(services).filter((name) => name.startsWith('gateway-'))
  expect(gateways).toHaveLength(3)
  for (const backend of ['gateways', 'running']) {
    const section = balancer.split(`\nbackend ${backend}\n`)[1]?.split('\nbackend ')[0] ?? ''
    expect(
      [...section.matchAll(/^ {4}server (\S+) "\$\{\w+-(\S+):3000\}"/gm)].map(([, a, b]) => [a, b]),
    ).toEqual(gateways.map((name) => [name, name]))
  }
  const total = Number(rootFile('docs/configuration.md').match(/`timeouts\.total` \| `(\d+)m`/)?.[1])
  expect(total).toBeGreaterThan(0)
  for (const side of ['client', 'server']) {
    expect(Number(balancer.match(new RegExp(`timeout ${side} (\\d+)m`))?.[1])).toBeGreaterThan(total)
  }
  expect(balancer).not.toMatch(/http-buffer-request|compression|^\s*cache/m)
})
