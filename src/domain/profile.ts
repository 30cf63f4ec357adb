import type { User } from './user.ts'

/** An account holder as shown to itself: `docs/api.md: User profile`. */
export interface Profile extends User {
  readonly displayName: string
  readonly email: string
  readonly codeHostId: string
  readonly chatAId: string
  readonly oidcId: string
  readonly chatBId: string
  readonly chatCId: string
  readonly forumId: string
  readonly affCode: string
  readonly affCount: number
  readonly affQuota: number
  readonly affHistoryQuota: number
  /** 0 = nobody. */
  readonly inviterId: number
  /** JSON; empty = never set. */
  readonly setting: string
  readonly paymentCustomer: string
  readonly sidebarModules: string
  readonly hasPassword: boolean
}

/** An account holder as shown to administrators. `docs/api.md: Users`. */
export interface ManagedUser extends Profile {
  /** Note that is not shown to the user. */
  readonly remark: string
  /** Unix seconds. */
  readonly createdTime: number
}
