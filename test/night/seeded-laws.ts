import fc from 'fast-check'
import { nightSeed } from './night-seed.ts'

/** The laws draw their cases from the night's seed too, which is printed whether they hold or not. */
fc.configureGlobal({ seed: nightSeed() })
