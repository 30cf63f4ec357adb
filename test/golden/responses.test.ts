import { testPairs } from './test-pairs.ts'

/** Sources that are no responses are those of `golden.test.ts` as well. */
testPairs('responses', { sharesSources: true })
