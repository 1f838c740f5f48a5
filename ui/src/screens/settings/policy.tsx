import { Screen } from "../../parts/screen";

export default function Page() {
  return <Screen title="Policy">{null}</Screen>;
}
