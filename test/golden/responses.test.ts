import { testPairs } from './test-pairs.ts'

/** The sources of other protocols are those of `golden.test.ts`. */
testPairs('responses', { sharesSources: true })
