import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { rootFile } from './compose-file.ts'
import { isInstalled } from './tutorial-run.ts'

const UNIT = rootFile('deploy/systemd/sluice.service')
/** The unit of one of several nodes; `%i` is its number. */
const NODE_UNIT = rootFile('deploy/systemd/sluice@.service')
const ROOT = join(import.meta.dirname, '../..')

/** The values of a setting of a unit. */
function values(name: string, unit = UNIT): string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

test('the systemd unit gives the gateway its writable folders, and time to end its calls', () => {
  const folders = Object.fromEntries(values('Environment').map((text) => text.split('=')))
  expect(folders).toEqual({
    DATA_DIR: `/var/lib/${values('StateDirectory')[0]}`,
    NODE_COMPILE_CACHE: `/var/cache/${values('CacheDirectory')[0]}`,
  })
  expect(values('WorkingDirectory')).toEqual([`/etc/${values('ConfigurationDirectory')[0]}`])
  const drain = rootFile('docs/configuration.md').match(/`drain_timeout` \| `(\d+)s`/)?.[1]
  expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(Number(drain) + 5)
})

test('the systemd unit removes the rights that the gateway does not need', () => {
  expect(values('User')).toEqual(['sluice'])
  expect(values('NoNewPrivileges')).toEqual(['yes'])
  expect(values('ProtectSystem')).toEqual(['strict'])
  expect(values('ProtectHome')).toEqual(['yes'])
  expect(values('CapabilityBoundingSet')).toEqual([''])
  expect(values('StateDirectoryMode')).toEqual(['0700'])
})

test('the unit of a node has its own data folder and address for probes, and else equals the unit of a single gateway', () => {
  const settings = (unit: string): string[] =>
    unit.split('\n').filter((line) => /^\w/.test(line) && !line.startsWith('Description='))
  const [one, node] = [settings(UNIT), settings(NODE_UNIT)]
  expect(node.filter((line) => !one.includes(line))).toEqual([
    'EnvironmentFile=-/etc/sluice/environment-%i',
    'Environment=DATA_DIR=/var/lib/sluice/%i',
    'Environment=ADMIN_LISTEN=127.0.0.1:910%i',
    'StateDirectory=sluice/%i',
  ])
  expect(one.filter((line) => !node.includes(line))).toEqual([
    'Environment=DATA_DIR=/var/lib/sluice',
    'StateDirectory=sluice',
  ])
  expect(rootFile('docs/scaling.md')).toContain('http://127.0.0.1:910$node/readyz')
})

test.for([
  ['sluice.service', UNIT, 'sluice.service'],
  ['sluice@.service', NODE_UNIT, 'sluice@1.service'],
])('systemd-analyze accepts every setting of %s', ([name = '', unit = '', instance = ''], { skip }) => {
  skip(!isInstalled('systemd-analyze'), 'systemd-analyze is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-unit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(
    join(folder, name),
    unit.replaceAll('/opt/sluice', ROOT).replace('/usr/bin/node', process.execPath),
  )
  const file = join(folder, instance)
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
})
