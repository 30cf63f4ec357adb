import type { Detector } from './detector.ts'

export type PII_KIND_NAMES = 'email' | 'phone' | 'credit_card' | 'iban' | 'ip' | 'ssn'

const todo = (kind: string): Detector => ({ kind, most: 64, forms: [{ source: `TODO${kind}` }] })

export const PII_DETECTORS: Readonly<Record<PII_KIND_NAMES, Detector>> = {
  email: todo('EMAIL'),
  phone: todo('PHONE'),
  credit_card: todo('CREDIT_CARD'),
  iban: todo('IBAN'),
  ip: todo('IP'),
  ssn: todo('SSN'),
}
