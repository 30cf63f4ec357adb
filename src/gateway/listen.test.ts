import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { connectionLimits } from './listen.ts'

test.each([
  [undefined, { total: 10_000, perBlock: 5_000, reserve: 500 }],
  [1_048_576, { total: 10_000, perBlock: 5_000, reserve: 500 }],
  [20_000, { total: 10_000, perBlock: 5_000, reserve: 500 }],
  [1_024, { total: 512, perBlock: 256, reserve: 26 }],
])('if the process may open %s files, the limits of connections are %j', (openFiles, limits) => {
  expect(connectionLimits(openFiles)).toEqual(limits)
})

test.runIf(process.platform === 'linux')(
  'the gateway reads the limit on open files with which its process was started',
  () => {
    const module = fileURLToPath(new URL('./listen.ts', import.meta.url))
    const program = `import { openFilesLimit } from '${module}'; console.log(openFilesLimit(), openFilesLimit('/nowhere'))`
    const node = `ulimit -n 345; exec "$0" --input-type=module -e "$1"`
    const told = execFileSync('sh', ['-c', node, process.execPath, program], {
      encoding: 'utf8',
      timeout: 240_000,
    })
    expect(told).toBe('345 undefined\n')
  },
)
