export { repairWhole, type RepairedAnswer } from './repair-whole.ts'
export { StreamRepair, type StreamRepairOptions } from './stream-repair.ts'
