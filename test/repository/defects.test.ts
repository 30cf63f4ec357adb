import { expect, test } from 'vitest'
import { type Patch, patchedTexts } from '../fixtures/patch.ts'
import { BUDGET_DEFECTS } from '../night/defects/budget.ts'
import { FUZZ_DEFECTS } from '../night/defects/fuzz.ts'
import { KILL_DEFECTS } from '../night/defects/kill.ts'
import * as nodes from '../night/defects/nodes.ts'
import { PLANTED_DEFECTS } from '../night/defects/planted.ts'

/** Lists of patches that are made together. */
const LISTS: readonly (readonly Patch[])[] = [
  BUDGET_DEFECTS,
  KILL_DEFECTS,
  ...Object.values(nodes).map((patches) => [patches].flat() as readonly Patch[]),
  ...FUZZ_DEFECTS.map(([, , patch]) => [patch]),
  ...PLANTED_DEFECTS.map(([, patch]) => [patch]),
]

test('each defect that tests plant at night applies to the sources', () => {
  const failures = LISTS.flatMap((patches) => {
    try {
      patchedTexts(patches)
      return []
    } catch (error) {
      return [String(error)]
    }
  })
  expect(failures).toEqual([])
})
