import fc from 'fast-check'
import { nightSeed } from './night-seed.ts'

/** Property tests use the night's seed too, which is printed in any case. */
fc.configureGlobal({ seed: nightSeed() })
