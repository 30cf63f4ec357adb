import type { Candidate } from './candidate.ts'
import { direct } from './direct.ts'
import { committing, forwarder } from './forwarder.ts'
import { haproxy } from './haproxy.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import { earlier, sluice } from './sluice.ts'

/**
 * All candidates, by their names in the table. `watched` is a gateway whose log is open in consoles during
 * the measurement, `earlier` is another checkout of this gateway.
 */
export const CANDIDATES = {
  direct,
  nginx,
  haproxy,
  forwarder,
  committing,
  sluice,
  watched: sluice,
  earlier,
  portkey,
} satisfies Record<string, Candidate>

/** The name of a candidate. */
export type CandidateName = keyof typeof CANDIDATES
