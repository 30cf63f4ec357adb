import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { PUBLIC_ADDRESS } from '../fixtures/network.ts'

/** Typical addresses of private networks, on the loopback interface of the test's own network namespace. */
const ADDRESSES = [
  `${PUBLIC_ADDRESS}/32`,
  ...[
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '192.0.2.1',
    '198.18.0.1',
  ].map((address) => `${address}/32`),
  ...[
    'fd00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fec0::1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '::7f00:1',
    '4000::1',
  ].map((address) => `${address}/128`),
]

function unshare(script: string): SpawnSyncReturns<string> {
  // The server that bundles the program for a run of tests is outside the namespace.
  const { TEST_PROGRAM_URL: _program, TEST_DATABASE_FILE: _database, ...env } = process.env
  return spawnSync('unshare', ['-rmn', 'sh', '-c', script], { encoding: 'utf8', timeout: 300_000, env })
}

test('no URL in a request reaches a private address, with real private addresses and a real name server', {
  timeout: 320_000,
}, () => {
  const probe = unshare('ip link set lo up')
  if (probe.status !== 0) {
    const why = `left out: no network namespace can be made here (${probe.stderr.trim()})`
    if (process.env['CI'] === 'true') throw new Error(why)
    console.log(why)
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-namespace-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const resolv = join(folder, 'resolv.conf')
  writeFileSync(resolv, 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n')
  const run = unshare(
    [
      'set -e',
      'ip link set lo up',
      ...ADDRESSES.map((address) => `ip addr add ${address} dev lo`),
      `mount --bind ${resolv} /etc/resolv.conf`,
      `exec ${process.execPath} ${fileURLToPath(new URL('ssrf-in-namespace.ts', import.meta.url))}`,
    ].join('\n'),
  )
  expect(run.status, `${run.stdout}\n${run.stderr}`).toBe(0)
  const { tried, letIn, called, controls, refused, asked } = JSON.parse(
    run.stdout.trim().split('\n').at(-1) ?? '',
  )
  console.log(
    `${tried} URLs, ${asked} questions to the name server, ${refused} of 200 that changed their minds refused`,
  )
  expect(letIn).toEqual([])
  expect(called).toEqual([`${PUBLIC_ADDRESS} 80`])
  expect(controls).toEqual([200, 200])
  expect(refused).toBeGreaterThan(50)
  expect(refused).toBeLessThan(150)
})
