export { type ProtocolCodec, repairWhole } from './repair-whole.ts'
export { StreamRepair } from './stream-repair.ts'
